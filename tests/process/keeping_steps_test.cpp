// The process is killed after each single system call in a connection's life.

#include "kept_world.hpp"
#include "line_client.hpp"
#include "stepper.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace kubelane::test {
namespace {

using namespace std::chrono_literals;

#ifdef __SANITIZE_ADDRESS__
constexpr int most_steps =
    18;  // each costs a sanitized kubelane: the whole life is for the release
constexpr bool covers_whole_life = false;
#else
constexpr int most_steps = 46;  // a life takes some sixteen counted calls, two steps each
constexpr bool covers_whole_life = true;
#endif
constexpr int least_steps = 8;

/// One kubelane for each step, all on the same API servers, each with a client.
struct lane_for_a_step {
  int port;
  int admin;
  std::unique_ptr<service_manager> manager;
  std::unique_ptr<line_client> client;
};

class KilledAfterEachCall : public ::testing::Test {
 protected:
  void start() {
    for (int i = 0; i < most_steps; ++i) {
      it.port = free_port();
      it.admin = free_port();
      const auto name = "config" + std::to_string(i) + ".yaml";
      const auto path = it.folder.write(name, it.configuration("", "interval: 10m"));
      const std::vector<std::string> arguments = {"run", "--config", path};
      all.push_back({it.port, it.admin, std::make_unique<service_manager>(arguments), nullptr});
      all.back().manager->start();
    }
    for (auto& each : all)
      ASSERT_TRUE(each.manager->ready() && answers(each.admin, "/readyz", 200));
  }
  void connect() {
    for (auto& each : all) {
      each.client = std::make_unique<line_client>(each.port, 5s);
      ASSERT_TRUE(each.client->ask("name"));
    }
  }
  void wait_until_stored() {
    for (auto& each : all)
      ASSERT_TRUE(poll_until([&] { return each.manager->store.count("c1") == 4; }, 10s));
  }
  static bool is_clean(lane_for_a_step& of) { return kept_world::is_clean(of.manager->store); }

  /// All kubelanes stand still. `life(lane, kill)` makes something happen in one of them, calls
  /// `kill`, which lets it do one call more than the one before and then replaces it, and says what
  /// must be true. Ends with the first whose life was over before its step came.
  enum class coverage { whole_life, part };
  template <typename Life>
  void step_through(std::chrono::milliseconds limit, const Life& life,
                    coverage wanted = coverage::whole_life) {
    std::vector<std::unique_ptr<stepper>> held;
    for (auto& each : all) held.push_back(std::make_unique<stepper>(each.manager->run().pid()));
    int step = 0;
    for (bool over = false; !over && step < most_steps; ++step) {
      auto& lane = all[static_cast<std::size_t>(step)];
      SCOPED_TRACE("killed at step " + std::to_string(step + 1));
      life(lane, [&] {
        over = !held[static_cast<std::size_t>(step)]->kill_after(step + 1, limit);
        lane.manager->run().wait();
        lane.manager->start();
        EXPECT_TRUE(lane.manager->ready()) << lane.manager->run().error();
      });
    }
    EXPECT_GT(step, least_steps);
    if (covers_whole_life && wanted == coverage::whole_life) {
      EXPECT_LT(step, most_steps) << "there may be more to it";
    }
  }

  world it;
  std::vector<lane_for_a_step> all;
};

TEST_F(KilledAfterEachCall, OfAcceptingAndDiallingTheClientIsEndedAndTheNextServed) {
  start();
  step_through(300ms, [](lane_for_a_step& lane, const auto& kill) {
    line_client client(lane.port, 5s);
    ASSERT_TRUE(client.send("name\n"));
    kill();
    // Not accepted yet: it is served now. Accepted: it was never stored, so it is over.
    if (!client.read_line()) {
      EXPECT_NE(client.wait_for_end(1s), line_client::state::open);
    }
    EXPECT_TRUE(line_client(lane.port).ask("name"));
  });
}

TEST_F(KilledAfterEachCall, OfStoringThePairLivesOrIsEndedVisibly) {
  start();
  connect();
  std::this_thread::sleep_for(800ms);  // just before they are old enough
  int lived = 0;
  step_through(1'500ms, [&lived](lane_for_a_step& lane, const auto& kill) {
    kill();
    if (lane.client->ask("name"))
      ++lived;
    else
      EXPECT_NE(lane.client->look(), line_client::state::open);
  });
  EXPECT_GT(lived, 0);
}

TEST_F(KilledAfterEachCall, OfHalfClosingEveryByteAndBothEndsArrive) {
  start();
  connect();
  wait_until_stored();
  step_through(300ms, [](lane_for_a_step& lane, const auto& kill) {
    ASSERT_TRUE(lane.client->send("echo\n" + std::string(5'000, 'x')));
    lane.client->end();
    kill();
    EXPECT_EQ(lane.client->read_bytes(5'000), 5'000);
    EXPECT_EQ(lane.client->wait_for_end(5s), line_client::state::ended);
    EXPECT_TRUE(is_clean(lane));
  });
}

TEST_F(KilledAfterEachCall, OfTheServersEndEveryByteAndBothEndsArrive) {
  start();
  connect();
  wait_until_stored();
  step_through(300ms, [](lane_for_a_step& lane, const auto& kill) {
    ASSERT_TRUE(lane.client->send("shut\n"));
    kill();
    EXPECT_EQ(lane.client->wait_for_end(5s), line_client::state::ended);
    lane.client->end();
    EXPECT_TRUE(is_clean(lane));
  });
}

// The last bytes wait in the kernel for a client that reads slowly, and so does the end.
TEST_F(KilledAfterEachCall, OfTheEndOfALongAnswerNothingOfItIsCut) {
  start();
  connect();
  wait_until_stored();
  step_through(
      300ms,
      [](lane_for_a_step& lane, const auto& kill) {
        ASSERT_TRUE(lane.client->send("bytes 300000\n"));
        lane.client->end();
        kill();
        EXPECT_EQ(lane.client->read_bytes(300'000), 300'000);
        EXPECT_EQ(lane.client->wait_for_end(5s), line_client::state::ended);
        EXPECT_TRUE(is_clean(lane));
      },
      coverage::part);
}

TEST_F(KilledAfterEachCall, OfPassingTheServersResetOnItStaysAReset) {
  start();
  connect();
  wait_until_stored();
  step_through(300ms, [](lane_for_a_step& lane, const auto& kill) {
    ASSERT_TRUE(lane.client->send("reset\n"));
    kill();
    EXPECT_EQ(lane.client->wait_for_end(5s), line_client::state::reset);
    EXPECT_TRUE(is_clean(lane));
  });
}

TEST_F(KilledAfterEachCall, OfPassingOnAResetAfterTheClientsEndItStaysAReset) {
  start();
  connect();
  wait_until_stored();
  step_through(300ms, [](lane_for_a_step& lane, const auto& kill) {
    ASSERT_TRUE(lane.client->send("reset\n"));
    lane.client->end();
    kill();
    EXPECT_EQ(lane.client->wait_for_end(5s), line_client::state::reset);
    EXPECT_TRUE(is_clean(lane));
  });
}

TEST_F(KilledAfterEachCall, OfTheClientsResetTheStoreIsCleanAfterwards) {
  start();
  connect();
  wait_until_stored();
  step_through(300ms, [](lane_for_a_step& lane, const auto& kill) {
    lane.client->reset();
    kill();
    EXPECT_TRUE(is_clean(lane));
  });
}

}  // namespace
}  // namespace kubelane::test
