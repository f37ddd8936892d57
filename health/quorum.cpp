#include "health/quorum.hpp"

#include <array>

namespace kubelane::health::quorum {
namespace {

std::string number(int value) {
  constexpr std::array words{"no",   "one", "two",   "three", "four",
                             "five", "six", "seven", "eight", "nine"};
  const auto index = static_cast<std::size_t>(value);
  return index < words.size() ? words[index] : std::to_string(value);
}

}  // namespace

std::string in_words(standing now, std::string_view up) {
  if (now.members == 0) return "no members";
  const std::string more = now.up < now.members ? "more " : "";
  const int spare = now.spare();
  auto text = std::to_string(now.up) + " of " + std::to_string(now.members) + " ";
  text.append(up) += ": ";
  if (spare < 0) return text + "quorum is lost, " + number(-spare) + " short of a majority";
  if (spare == 0) return text + "one " + more + "failure loses quorum";
  return text + "quorum survives " + number(spare) + " " + more +
         (spare == 1 ? "failure" : "failures");
}

std::string removal_in_words(standing after) {
  if (after.members == 0) return "it is the only member: nothing would be left";
  const bool one = after.members == 1;
  return "of the " + std::to_string(after.members) + (one ? " member" : " members") + " left, " +
         std::to_string(after.up) + " would answer, and a majority is " +
         std::to_string(majority(after.members)) + ": nothing could be written";
}

std::string writes_in_words(standing after) {
  const int spare = after.spare();
  return after.met() ? "go on, " + std::to_string(spare) + " more may be lost"
                     : "stop, " + std::to_string(-spare) + " short of a majority";
}

}  // namespace kubelane::health::quorum
