#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Whether kubelane has crashed so often that its connections may be the reason.
///
/// A connection whose data crashes kubelane is handed to the next process, and crashes that one
/// too. So crashes are counted, and after too many the next process ends the connections it was
/// handed.
///
/// Times are since boot (CLOCK_BOOTTIME): a wall clock jumps when NTP sets it. A reboot ends every
/// connection, so crashes before it count for nothing; each line of the file names its boot by the
/// moment it began. Not by the kernel's boot_id: a container's manager may show one of its own, and
/// the service's sandbox the kernel's.
namespace kubelane::systemd::crash_count {

using time = std::chrono::milliseconds;

/// When a boot began, on the wall clock. It moves as that clock is corrected.
using boot = std::chrono::seconds;

/// Two moments that are no further apart are the same boot: a machine needs longer to come back,
/// and a clock that is set further while it runs only makes crashes forgotten.
constexpr boot same_boot{10};

/// How many crashes the file remembers, at most.
constexpr std::size_t remembered = 10;

/// True if an exit was a crash: SEGV, ABRT, BUS, ILL, FPE or the watchdog. A KILL from outside, a
/// failed start and a clean exit are none.
/// Source: systemd.exec(5), $SERVICE_RESULT and $EXIT_STATUS of ExecStopPost=.
bool is_crash(std::string_view service_result, std::string_view exit_status);

/// True if three of `times` lie within ten seconds before `now`, or five within ten minutes.
bool too_many(std::span<const time> times, time now);

/// The crashes of this boot in the text of a crash file, in its order; lines that make no sense are
/// left out.
std::vector<time> parse(std::string_view text, boot current);

/// The text of a crash file with the newest `remembered` of `times`.
std::string format(std::span<const time> times, boot current);

/// When this boot began.
boot current_boot();

/// Time since boot, suspension included.
time now();

/// The crashes of this boot in `folder`, the service's state directory. None if nothing is
/// readable.
std::vector<time> read(const std::string& folder);

/// Adds a crash at this moment to the file in `folder`, all or nothing. What failed, if something
/// did.
std::optional<std::string> note(const std::string& folder);

/// Forgets those in `folder`.
void forget(const std::string& folder);

}  // namespace kubelane::systemd::crash_count
