#pragma once

#include "etcd/survey.hpp"

#include <boost/system/result.hpp>

#include <string>
#include <string_view>
#include <vector>

// The JSON of etcd's HTTPS gateway. 64-bit numbers are text there, and what is zero or empty is
// left out. Source: etcd's api/etcdserverpb/rpc.proto; answers of etcd 3.4 are in tests/etcd.
//
// Each fails with what is wrong, in words. Safe on hostile text.

namespace kubelane::etcd {

template <class T>
using parsed = boost::system::result<T, std::string>;

/// The answer of /v3/maintenance/status.
parsed<member_status> parse_status(std::string_view json);

/// The answer of /v3/cluster/member/list, in its order.
parsed<std::vector<listed_member>> parse_members(std::string_view json);

/// The answer of /v3/maintenance/alarm.
parsed<std::vector<alarm>> parse_alarms(std::string_view json);

/// What an answer that is not 200 means, and what would be right.
std::string explain_refusal(unsigned status, std::string_view reason, std::string_view body);

}  // namespace kubelane::etcd
