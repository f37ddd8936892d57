#include "health/probe_verdict.hpp"

#include "net/tls.hpp"

#include <boost/asio/error.hpp>
#include <gtest/gtest.h>

namespace kubelane::health {
namespace {

using boost::system::error_code;
using net::stream_error;
using namespace std::chrono_literals;

error_code system_error(int number) {
  return {number, boost::system::system_category()};
}

verdict connect_failed(int number) {
  return judge_failure(phase::connect, system_error(number), {});
}

TEST(ProbeVerdict, TwoHundredPasses) {
  EXPECT_EQ(judge_answer(200, "OK", "ok").result, outcome::passed);
  EXPECT_EQ(judge_answer(200, "OK", "ok").detail, "");
}

TEST(ProbeVerdict, UnauthorizedIsAlive) {
  EXPECT_EQ(judge_answer(401, "Unauthorized", "").result, outcome::unauthorized);
  EXPECT_EQ(judge_answer(401, "Unauthorized", "").detail, "401 Unauthorized");
  EXPECT_EQ(judge_answer(403, "Forbidden", "").result, outcome::unauthorized);
}

TEST(ProbeVerdict, NamesTheFailedChecks) {
  const auto seen = judge_answer(500, "Internal Server Error",
                                 "[+]ping ok\n[-]log failed: x\n[-]poststarthook/a failed: x\n");
  EXPECT_EQ(seen.result, outcome::not_ready);
  EXPECT_EQ(seen.detail, "log, poststarthook/a");
  EXPECT_FALSE(seen.etcd_failed);
}

TEST(ProbeVerdict, ALostEtcdIsMarked) {
  EXPECT_TRUE(judge_answer(500, "", "[-]etcd failed: x\n").etcd_failed);
  EXPECT_TRUE(judge_answer(500, "", "[-]etcd-readiness failed: x\n").etcd_failed);
}

TEST(ProbeVerdict, ShuttingDownIsThatWhateverElseFails) {
  const auto seen = judge_answer(500, "", "[-]etcd failed: x\n[-]shutdown failed: x\n");
  EXPECT_EQ(seen.result, outcome::shutting_down);
  EXPECT_FALSE(seen.etcd_failed);
}

TEST(ProbeVerdict, WithoutNamesTheStatusLineIsTheCause) {
  EXPECT_EQ(judge_answer(503, "Service Unavailable", "").detail, "503 Service Unavailable");
  EXPECT_EQ(judge_answer(302, "", "").detail, "302");
  EXPECT_EQ(judge_answer(503, "bad\x01words", "").detail, "503 bad?words");
}

TEST(ProbeVerdict, TellsConnectErrorsApart) {
  EXPECT_EQ(connect_failed(ECONNREFUSED).result, outcome::refused);
  EXPECT_EQ(connect_failed(EHOSTUNREACH).result, outcome::host_silent);
  EXPECT_EQ(connect_failed(EHOSTDOWN).result, outcome::host_silent);
  EXPECT_EQ(connect_failed(ETIMEDOUT).result, outcome::timed_out);
  EXPECT_EQ(connect_failed(ECONNRESET).result, outcome::lost);
}

TEST(ProbeVerdict, ItsOwnTroubleIsNotTheServers) {
  for (const int number : {ENETUNREACH, ENETDOWN, EACCES, EPERM, EMFILE, ENFILE, EADDRNOTAVAIL,
                           EAFNOSUPPORT, ENOBUFS, ENOMEM})
    EXPECT_EQ(connect_failed(number).result, outcome::local_trouble) << number;
  EXPECT_EQ(connect_failed(EACCES).detail, "permission denied (local policy)");
  EXPECT_EQ(connect_failed(EPERM).detail, "permission denied (local policy)");
  EXPECT_EQ(connect_failed(ENETUNREACH).detail, "network unreachable");
  EXPECT_EQ(connect_failed(EMFILE).detail, "out of file descriptors");
}

TEST(ProbeVerdict, JudgesStreamErrors) {
  const auto judged = [](stream_error error) { return judge_failure(phase::tls, error, "words"); };
  EXPECT_EQ(judged(stream_error::wrong_certificate).result, outcome::wrong_certificate);
  EXPECT_EQ(judged(stream_error::bad_validity).result, outcome::bad_validity);
  EXPECT_EQ(judged(stream_error::not_tls).result, outcome::not_tls);
  EXPECT_EQ(judged(stream_error::tls_failed).result, outcome::not_tls);
  EXPECT_EQ(judged(stream_error::peer_silent).result, outcome::host_silent);
  EXPECT_EQ(judged(stream_error::truncated).result, outcome::lost);
  EXPECT_EQ(judged(stream_error::certificate_required).result, outcome::unauthorized);
  EXPECT_EQ(judged(stream_error::bad_validity).detail, "words");
}

TEST(ProbeVerdict, NamesThePhaseOfALoss) {
  const error_code eof = boost::asio::error::eof;
  EXPECT_EQ(judge_failure(phase::tls, eof, {}).detail, "connection ended in the TLS handshake");
  EXPECT_EQ(judge_failure(phase::answer, system_error(ECONNRESET), {}).detail,
            "connection reset before the answer");
  EXPECT_EQ(judge_failure(phase::answer, eof, {}).result, outcome::lost);
}

TEST(ProbeVerdict, ALimitIsRaisedToEightRoundTripsAndTwoSeconds) {
  EXPECT_EQ(phase_limit(500ms, 1ms), 500ms);
  EXPECT_EQ(phase_limit(500ms, 100ms), 800ms);
  EXPECT_EQ(phase_limit(500ms, 1s), 2s);
  EXPECT_EQ(phase_limit(5s, 1s), 5s);
}

}  // namespace
}  // namespace kubelane::health
