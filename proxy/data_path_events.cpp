#include "proxy/data_path_impl.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

namespace kubelane::proxy {
namespace {

constexpr milliseconds feed_again_after{20};

data_path::impl& self_of(void* owner) {
  return *static_cast<data_path::impl*>(owner);
}

[[gnu::hot]] void note_unproven(void* owner, relay& reader) {
  self_of(owner).unproven(reader);
}

[[gnu::hot]] void note_restless(void* owner, relay& busy) {
  self_of(owner).restless(busy);
}

template <typename Object>
void destroy(void* object) {
  delete static_cast<Object*>(object);
}

}  // namespace

relay_context data_path::impl::make_relay_seam() {
  return {
      .loop = loop,
      .pipes = pipes,
      .limits = settings.relay,
      .owner = this,
      .ended = [](void* owner, relay& over,
                  end_reason why) { self_of(owner).relay_ended(over, why); },
      .forced =
          [](void* owner, upstream_id id, const char* cause) {
            if (cause != nullptr) self_of(owner).observer.connection_reset(id, cause);
          },
      .starved = [](void* owner, relay& waiting) { self_of(owner).starved(waiting); },
      .unproven = note_unproven,
      .restless = note_restless,
  };
}

session_context data_path::impl::make_session_seam() {
  return {
      .loop = loop,
      .pool = pool,
      .ledger = ledger,
      .limits = settings.dial,
      .budget = budget,
      .scratch = scratch,
      .owner = this,
      .connected =
          [](void* owner, session& over, relay::beginning from) {
            self_of(owner).session_connected(over, std::move(from));
          },
      .ended = [](void* owner, session& over,
                  end_reason why) { self_of(owner).session_ended(over, why); },
      .dial_ended =
          [](void* owner, upstream_id id, health::dial_result result,
             std::chrono::microseconds took) {
            self_of(owner).observer.dial_ended(id, result, took);
          },
      .hedged = [](void* owner, const char* kind) { self_of(owner).observer.hedged(kind); },
      .local_trouble = [](void* owner, int error) { self_of(owner).trouble_here(error); },
      .may_dial = [](void* owner) { return self_of(owner).may_dial(); },
      .all_slow =
          [](void* owner) { return self_of(owner).view.all_slow(self_of(owner).loop.now()); },
  };
}

void data_path::impl::relay_ended(relay& over, end_reason why) {
  if (over.record() != nullptr) store->forget(*over.record());
  over.everyone.unlink();
  --relay_count;
  loop.destroy_later(&over, destroy<relay>);
  observer.connection_ended(over.upstream(), why,
                            std::chrono::duration_cast<milliseconds>(loop.now() - over.accepted()));
  try_to_accept();
}

void data_path::impl::session_connected(session& over, relay::beginning from) {
  over.everyone.unlink();
  --session_count;
  loop.destroy_later(&over, destroy<session>);
  begin(new relay(relay_seam, std::move(from)));
}

/// Takes it over.
void data_path::impl::begin(relay* added) {
  relays.push_back(*added);
  ++relay_count;
  restless(*added);
  added->resume();
}

void data_path::impl::session_ended(session& over, end_reason why) {
  over.everyone.unlink();
  --session_count;
  loop.destroy_later(&over, destroy<session>);
  observer.connection_ended(std::nullopt, why,
                            std::chrono::duration_cast<milliseconds>(loop.now() - over.accepted()));
  try_to_accept();
}

void data_path::impl::starved(relay& waiting) {
  if (waiting.starving.is_linked()) return;
  starving.push_back(waiting);
  if (!feeding.armed()) feeding.arm(loop.now() + feed_again_after);
  problems.say("pipes", "out of file descriptors, a connection waits for a pipe", loop.now(),
               observer.problem);
}

[[gnu::hot]] void data_path::impl::unproven(relay& reader) {
  reader.doubtful.unlink();
  doubtful.push_back(reader);
  if (!looking.armed()) looking.arm(loop.now() + look_period);
}

[[gnu::hot]] void data_path::impl::restless(relay& busy) {
  if (busy.restless.is_linked()) return;
  busy.check_due = loop.now() + check_again_after;
  to_check.push_back(busy);
}

void data_path::impl::trouble_here(int error) {
  const std::string words = std::strerror(error);
  problems.say(("dial " + words).c_str(), "cannot dial any upstream from here: " + words,
               loop.now(), observer.problem);
}

bool data_path::impl::may_dial() {
  if (!view.all_down(loop.now()) || dials_while_down.take(loop.now())) return true;
  observer.rejected("all_down");
  return false;
}

}  // namespace kubelane::proxy
