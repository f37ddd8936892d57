#include "etcd/ask.hpp"

#include "etcd/answers.hpp"
#include "etcd/conversation.hpp"
#include "etcd/view.hpp"
#include "net/resolve.hpp"
#include "net/task_group.hpp"
#include "net/timeout.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <memory>

namespace kubelane::etcd {
namespace {

using clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

// From the start. A member that says nothing for so long is taken for dead; elections are waited
// for a little, and the whole ends well before three seconds.
constexpr auto given_until = 1600ms;
constexpr auto found_until = 2000ms;  // those that only a list of members told of
constexpr auto look_again_every = 250ms;
constexpr auto look_again_until = 1900ms;
constexpr auto looks_end = 2300ms;
constexpr auto agreed_until = 2700ms;

class surveyor {
 public:
  surveyor(asio::io_context& io, const credentials& show)
      : io_(io),
        show_(show),
        started_(clock::now()),
        tasks_(io.get_executor(), [this](std::exception_ptr failure) { bug_ = failure; }) {}

  survey run(const std::vector<url>& endpoints) {
    task_holder_.spawn(ask_everything(endpoints));
    io_.run();
    if (bug_) std::rethrow_exception(bug_);
    return std::move(result_);
  }

 private:
  using many_answers = std::deque<endpoint_answers>;  // others are added while some are filled in

  asio::awaitable<void> ask_everything(std::vector<url> endpoints) {
    for (const auto& one : endpoints) start_asking(one, true, started_ + given_until);
    auto all = tasks_.wait_empty();
    co_await std::move(all);
    take_answers();
    auto looking = look_until_settled();
    co_await std::move(looking);
    auto agreeing = agree();
    co_await std::move(agreeing);
    resolver_.reset();  // a name without an answer keeps nobody waiting
  }

  void start_asking(const url& whom, bool was_given, time_point deadline) {
    endpoint_answers blank;
    blank.url = to_string(whom);
    blank.was_given = was_given;
    blank.trouble = "no answer in time";
    answers_.push_back(std::move(blank));
    tasks_.spawn(ask_one(answers_.back(), whom, deadline));
  }

  asio::awaitable<void> ask_one(endpoint_answers& into, url whom, time_point deadline) {
    auto resolving = resolve(whom.at.host, deadline);
    const auto addresses = co_await std::move(resolving);
    if (!addresses) {
      into.trouble = addresses.error();
      co_return;
    }
    conversation with(io_.get_executor(), whom, show_, deadline);
    auto opening = with.open(*addresses);
    into.trouble = co_await std::move(opening);
    if (!into.trouble.empty()) co_return;
    auto asking = with.post("/v3/maintenance/status", "{}");
    const auto status = co_await std::move(asking);
    take_status(into, status);
    if (!into.status) co_return;
    auto listing = with.post("/v3/cluster/member/list", "{}");
    const auto members = co_await std::move(listing);
    take_members(into, members);
    if (into.members) discover();
  }

  static void take_status(endpoint_answers& into, const conversation::reply& from) {
    into.trouble = from.trouble;
    into.clock = from.clock;
    if (!from.trouble.empty()) return;
    auto status = parse_status(from.body);
    if (status)
      into.status = std::move(*status);
    else
      into.trouble = status.error();
  }

  static void take_members(endpoint_answers& into, const conversation::reply& from) {
    into.trouble = from.trouble;
    if (!from.trouble.empty()) return;
    auto members = parse_members(from.body);
    if (members)
      into.members = std::move(*members);
    else
      into.trouble = members.error();
  }

  // Whoever is a member is asked, as it would be missed otherwise.
  void discover() {
    if (looks_again_) return;
    const std::vector<endpoint_answers> so_far(answers_.begin(), answers_.end());
    for (const auto& text : unasked(so_far))
      if (const auto parsed = parse_url(text)) start_asking(*parsed, false, started_ + found_until);
  }

  asio::awaitable<net::lookup_result> resolve(std::string host, time_point deadline) {
    boost::system::error_code no_address;
    const auto address = asio::ip::make_address(host, no_address);
    if (!no_address) co_return std::vector<asio::ip::address>(1, address);
    struct waiting {
      asio::steady_timer done;
      std::optional<net::lookup_result> found;
    };
    // Shared with the look-up, which may end later than this.
    const auto state = std::make_shared<waiting>(asio::steady_timer(io_, deadline), std::nullopt);
    if (!resolver_) resolver_.emplace(io_);
    resolver_->lookup(host, [state](net::lookup_result found) {
      state->found = std::move(found);
      state->done.cancel();
    });
    auto ending = state->done.async_wait(net::nothrow);
    co_await std::move(ending);
    if (!state->found) co_return "the name " + host + " was not resolved in time";
    if (!*state->found) co_return "cannot resolve " + host + ": " + state->found->error();
    co_return **state->found;
  }

  void take_answers() {
    result_.endpoints.assign(answers_.begin(), answers_.end());
    answers_.clear();
  }

  // Those that answered are asked again while they do not agree on a leader.
  asio::awaitable<void> look_until_settled() {
    const auto first = judge(result_).leader;
    looks_again_ = true;
    while (is_unsettled(judge(result_)) && clock::now() - started_ < look_again_until) {
      asio::steady_timer pause(io_, look_again_every);
      auto pausing = pause.async_wait(net::nothrow);
      co_await std::move(pausing);
      auto previous = std::move(result_.endpoints);
      for (const auto& one : previous)
        if (const auto parsed = parse_url(one.url); one.status && parsed)
          start_asking(*parsed, one.was_given, started_ + looks_end);
      auto all = tasks_.wait_empty();
      co_await std::move(all);
      result_.endpoints = with_news(std::move(previous));
      result_.leader_changed = judge(result_).leader != first;
    }
  }

  // What was answered before counts while there is nothing newer.
  std::vector<endpoint_answers> with_news(std::vector<endpoint_answers> previous) {
    for (auto& fresh : answers_) {
      if (!fresh.status) continue;
      const auto same = [&](const endpoint_answers& one) { return one.url == fresh.url; };
      auto& old = *std::find_if(previous.begin(), previous.end(), same);
      if (!fresh.members) fresh.members = std::move(old.members);
      old = std::move(fresh);
    }
    answers_.clear();
    return previous;
  }

  asio::awaitable<void> agree() {
    const auto whom = parse_url(whom_to_ask(judge(result_)));
    if (!whom) co_return;
    agreement result;
    result.url = to_string(*whom);
    const auto deadline = std::min(clock::now() + 1s, started_ + agreed_until);
    auto resolving = resolve(whom->at.host, deadline);
    const auto addresses = co_await std::move(resolving);
    if (!addresses) co_return;
    conversation with(io_.get_executor(), *whom, show_, deadline);
    auto opening = with.open(*addresses);
    result.trouble = co_await std::move(opening);
    if (result.trouble.empty()) {
      auto asking = with.post("/v3/maintenance/alarm", R"({"action": "GET"})");
      const auto answer = co_await std::move(asking);
      // Not for us: no proof, and no sign of trouble either.
      if (answer.status >= 400 && answer.status < 500) co_return;
      result.trouble = answer.trouble;
      auto alarms = parse_alarms(answer.body);
      if (result.trouble.empty() && !alarms) result.trouble = alarms.error();
      if (alarms) result_.alarms = std::move(*alarms);
    }
    result.reached = result.trouble.empty();
    result_.agreed = std::move(result);
  }

  asio::io_context& io_;
  const credentials& show_;
  const time_point started_;
  std::exception_ptr bug_;
  std::optional<net::resolver> resolver_;
  many_answers answers_;
  bool looks_again_ = false;
  survey result_;
  net::task_group tasks_;
  net::task_group task_holder_{io_.get_executor(),
                               [this](std::exception_ptr failure) { bug_ = failure; }};
};

boost::system::result<std::string, std::string> read_file(const std::string& option,
                                                          const std::string& path) {
  using result = boost::system::result<std::string, std::string>;
  if (path.empty()) return result(boost::system::in_place_value, "");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.is_open() && !file.bad() && errno == 0)
    return result(boost::system::in_place_value, std::move(text));
  return result(boost::system::in_place_error, option + " " + path + ": " + std::strerror(errno));
}

}  // namespace

boost::system::result<credentials, std::string> read_credentials(
    const std::string& ca_file, const std::string& certificate_file, const std::string& key_file) {
  // In place: an aggregate of texts could be made of an error's text, too.
  using result = boost::system::result<credentials, std::string>;
  using boost::system::in_place_error;
  const auto ca = read_file("--cacert", ca_file);
  if (!ca) return result(in_place_error, ca.error());
  const auto certificate = read_file("--cert", certificate_file);
  if (!certificate) return result(in_place_error, certificate.error());
  const auto key = read_file("--key", key_file);
  if (!key) return result(in_place_error, key.error());
  net::client_tls settings;
  settings.ca_pem = *ca;
  settings.server_name = "etcd";
  if (!ca->empty())
    if (const auto context = net::tls_context::client(settings); !context)
      return result(in_place_error, "--cacert " + ca_file + " " + context.error());
  settings.verify = net::verify_peer::none;
  settings.certificate_pem = *certificate;
  settings.key_pem = *key;
  if (const auto context = net::tls_context::client(settings); !context)
    return result(in_place_error,
                  "--cert " + certificate_file + ", --key " + key_file + ": " + context.error());
  return credentials{*ca, *certificate, *key};
}

survey ask_cluster(const std::vector<url>& endpoints, const credentials& show) {
  asio::io_context io{1};
  return surveyor(io, show).run(endpoints);
}

}  // namespace kubelane::etcd
