#include "net/resolve.hpp"

#include "tests/support/poll_until.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <set>

namespace kubelane {
namespace {

namespace asio = boost::asio;
using net::lookup_result;
using namespace std::chrono_literals;

// Names that begin with `dead` are answered when told to; shared with threads that outlive a test.
class name_server {
 public:
  lookup_result answer(const std::string& name) {
    std::unique_lock guard(lock_);
    ++asked_[name];
    ++running_;
    most_ = std::max(most_, running_);
    if (name.starts_with("dead")) changed_.wait(guard, [&] { return released_; });
    --running_;
    if (name.starts_with("dead")) return std::string("no answer");
    return std::vector<asio::ip::address>{asio::ip::make_address("10.0.0.1")};
  }
  void release() {
    const std::lock_guard guard(lock_);
    released_ = true;
    changed_.notify_all();
  }
  void hold() {
    const std::lock_guard guard(lock_);
    released_ = false;
  }
  int running() {
    const std::lock_guard guard(lock_);
    return running_;
  }
  int asked(const std::string& name) {
    const std::lock_guard guard(lock_);
    return asked_[name];
  }
  int most() {
    const std::lock_guard guard(lock_);
    return most_;
  }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  std::map<std::string, int> asked_;
  bool released_ = false;
  int running_ = 0;
  int most_ = 0;
};

class Resolve : public testing::Test {
 protected:
  ~Resolve() override { names->release(); }

  net::resolver::callback into(std::vector<lookup_result>& list) {
    return [&](lookup_result answer) { list.push_back(std::move(answer)); };
  }

  asio::io_context io;
  std::shared_ptr<name_server> names = std::make_shared<name_server>();
  net::resolver resolver{io,
                         [names = names](const std::string& name) { return names->answer(name); }};
  std::vector<lookup_result> answers;
};

TEST_F(Resolve, AnswersOnTheLoop) {
  resolver.lookup("cp1.example", into(answers));
  ASSERT_TRUE(test::poll_until(io, [&] { return answers.size() == 1; }));
  EXPECT_EQ(answers[0]->at(0).to_string(), "10.0.0.1");
}

TEST_F(Resolve, ANameIsAskedOnceAtATime) {
  resolver.lookup("dead1", into(answers));
  resolver.lookup("dead1", into(answers));
  ASSERT_TRUE(test::poll_until(io, [&] { return names->asked("dead1") == 1; }));
  names->release();
  ASSERT_TRUE(test::poll_until(io, [&] { return answers.size() == 2; }));
  EXPECT_EQ(names->asked("dead1"), 1);
  EXPECT_EQ(answers[1].error(), "no answer");
}

TEST_F(Resolve, ADeadNameDoesNotHoldOthersUp) {
  std::vector<lookup_result> dead;
  for (const auto* name : {"dead1", "dead2", "dead3"}) resolver.lookup(name, into(dead));
  resolver.lookup("cp1.example", into(answers));
  EXPECT_TRUE(test::poll_until(io, [&] { return answers.size() == 1; }));
  EXPECT_TRUE(dead.empty());
}

TEST_F(Resolve, UsesFourThreadsAtMost) {
  for (int i = 0; i < 10; ++i) resolver.lookup("dead" + std::to_string(i), into(answers));
  test::poll_until(
      io, [&] { return names->most() > 4; }, 100ms);
  names->release();
  ASSERT_TRUE(test::poll_until(io, [&] { return answers.size() == 10; }));
  EXPECT_EQ(names->most(), 4);
}

TEST_F(Resolve, SlowNamesShareTwoThreads) {
  const auto ask_all = [&] {
    answers.clear();
    for (int i = 0; i < 4; ++i) resolver.lookup("dead" + std::to_string(i), into(answers));
  };
  ask_all();  // nobody knows yet that they are slow
  io.run_for(1100ms);
  names->release();
  ASSERT_TRUE(test::poll_until(io, [&] { return answers.size() == 4; }));
  names->hold();
  ask_all();
  std::vector<lookup_result> good;
  resolver.lookup("cp1.example", into(good));
  EXPECT_TRUE(test::poll_until(io, [&] { return good.size() == 1; }));
  EXPECT_TRUE(test::poll_until(io, [&] { return names->running() == 2; }));
  io.run_for(100ms);
  EXPECT_EQ(names->running(), 2);
  names->release();
  EXPECT_TRUE(test::poll_until(io, [&] { return answers.size() == 4; }));
}

TEST_F(Resolve, AnotherQuestionAfterTheAnswerAsksAgain) {
  for (int round = 1; round <= 3; ++round) {
    resolver.lookup("cp1.example", into(answers));
    ASSERT_TRUE(
        test::poll_until(io, [&] { return answers.size() == static_cast<std::size_t>(round); }));
  }
  EXPECT_EQ(names->asked("cp1.example"), 3);
}

TEST(ResolveOnceGone, ALateAnswerIsForgotten) {
  asio::io_context io;
  const auto names = std::make_shared<name_server>();
  {
    net::resolver resolver(io, [names](const std::string& name) { return names->answer(name); });
    resolver.lookup("dead1", [](lookup_result) { ADD_FAILURE(); });
    test::poll_until(io, [&] { return names->asked("dead1") == 1; });
  }
  names->release();
  io.run_for(20ms);
}

TEST(ResolveSystem, KnowsLocalhost) {
  const auto answer = net::ask_system("localhost");
  ASSERT_TRUE(answer);
  ASSERT_FALSE(answer->empty());
  for (const auto& address : *answer) EXPECT_TRUE(address.is_loopback());
}

TEST(ResolveSystem, SaysWhyThereIsNoAddress) {
  const auto answer = net::ask_system("no..such..name");
  ASSERT_FALSE(answer);
  EXPECT_FALSE(answer.error().empty());
}

}  // namespace
}  // namespace kubelane
