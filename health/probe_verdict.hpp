#pragma once

#include "health/evidence.hpp"

#include <boost/system/error_code.hpp>

#include <chrono>
#include <string>
#include <string_view>

namespace kubelane::health {

/// What a probe's end means.
struct verdict {
  outcome result = outcome::passed;
  std::string detail;        ///< in words for people; empty for a plain pass
  bool etcd_failed = false;  ///< as in probe_report
};

/// Judges an answer: 200 passed, 401 and 403 unauthorized, any other by the failed checks that its
/// body names, else by its status line.
verdict judge_answer(unsigned status, std::string_view reason, std::string_view body);

/// Judges what ended a probe without an answer. `words` are the stream's, for its own errors.
verdict judge_failure(phase reached, boost::system::error_code error, const std::string& words);

/// Limit of one phase: `timeout`, raised to 8 round trips, which raise it to 2 s at most.
milliseconds phase_limit(milliseconds timeout, std::chrono::microseconds round_trip);

}  // namespace kubelane::health
