#include "net/descriptor_reserve.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace kubelane {
namespace {

// No descriptor beyond those that are open.
class at_the_limit {
 public:
  at_the_limit() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(0);
    auto none = before_;
    none.rlim_cur = static_cast<rlim_t>(next);
    ::close(next);
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~at_the_limit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

int open_one() {
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

TEST(DescriptorReserve, GivesUpADescriptorWhenNoneIsLeft) {
  net::descriptor_reserve reserve;
  reserve.resize(2);
  const at_the_limit limit;
  ASSERT_EQ(open_one(), -1);
  ASSERT_TRUE(reserve.give_up());
  const int one = open_one();
  EXPECT_GE(one, 0);
  ::close(one);
}

TEST(DescriptorReserve, TakesBackWhatWasGivenUp) {
  net::descriptor_reserve reserve;
  reserve.resize(2);
  const at_the_limit limit;
  reserve.give_up();
  reserve.refill();
  EXPECT_EQ(reserve.size(), 2u);
  EXPECT_EQ(open_one(), -1);
}

TEST(DescriptorReserve, AnEmptyOneHasNothingToGive) {
  net::descriptor_reserve reserve;
  EXPECT_FALSE(reserve.give_up());
}

TEST(DescriptorReserve, ShrinksAndGrows) {
  net::descriptor_reserve reserve;
  reserve.resize(3);
  EXPECT_EQ(reserve.size(), 3u);
  reserve.resize(1);
  EXPECT_EQ(reserve.size(), 1u);
}

}  // namespace
}  // namespace kubelane
