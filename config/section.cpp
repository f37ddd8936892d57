#include "config/section.hpp"

#include <charconv>
#include <utility>

namespace kubelane::config {
namespace {

using namespace std::chrono_literals;

constexpr milliseconds year = 8'760h;

/// More keys than any section knows, by far: not worth a line each.
constexpr std::size_t most_members = 200;

bool is_digits(std::string_view text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && std::all_of(text.begin(), text.end(), digit);
}

std::string listed(const std::vector<std::string_view>& names) {
  std::string result;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) result += i + 1 == names.size() ? " or " : ", ";
    result += names[i];
  }
  return result;
}

std::string folded(std::string_view word) {
  std::string result(word);
  for (auto& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return result;
}

/// Letters to insert, drop, change or swap with their neighbour (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const std::size_t changed = a[i - 1] == b[j - 1] ? 0 : 1;
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

/// Why a text is no duration, with the right form.
std::string explain_duration(std::string_view text) {
  const auto shown = quote(text);
  if (is_digits(text) && text.size() <= 18) {
    const auto plain = std::string(text);
    return shown + " has no unit: write " + plain + "s or " + plain + "ms";
  }
  return shown + " is not a duration: write a whole number and ms, s, m or h, as 250ms or 10m";
}

}  // namespace

section::section(const node* from, std::string path, reading& out)
    : from_(from), path_(std::move(path)), out_(out) {}

void section::complain(std::string_view key, position at, std::string message) {
  out_.problems.push_back({at, path_of(key), std::move(message)});
}

void section::warn(std::string_view key, position at, std::string message) {
  out_.warnings.push_back({at, path_of(key), std::move(message)});
}

const member* section::find(std::string_view key) const {
  if (from_ == nullptr) return nullptr;
  const auto is_it = [key](const member& each) { return each.key == key; };
  const auto found = std::find_if(from_->members.begin(), from_->members.end(), is_it);
  return found == from_->members.end() ? nullptr : &*found;
}

bool section::has(std::string_view key) const {
  return find(key) != nullptr;
}

const node* section::value(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  const auto* found = find(key);
  if (found == nullptr) return nullptr;
  const bool is_empty = found->value.is == node::kind::empty;
  out_.written.emplace(path_of(key), is_empty ? found->at : found->value.at);
  if (!is_empty) return &found->value;
  complain(key, found->at, "is empty: give a value, or leave the key out");
  return nullptr;
}

const node* section::scalar(std::string_view key, std::string_view wanted) {
  const auto* found = value(key);
  if (found == nullptr || found->is == node::kind::scalar) return found;
  complain(key, found->at, "is " + std::string(kind_of(*found)) + ", not " + std::string(wanted));
  return nullptr;
}

const node* section::list(std::string_view key, std::size_t most) {
  const auto* found = value(key);
  if (found == nullptr) return nullptr;
  if (found->is != node::kind::list) {
    complain(key, found->at, "is " + std::string(kind_of(*found)) + ", not a list");
    return nullptr;
  }
  if (found->items.size() <= most) return found;
  const auto size = std::to_string(found->items.size());
  complain(key, found->at, "has " + size + " items: more than " + std::to_string(most));
  return nullptr;
}

void section::text(std::string_view key, std::string& into) {
  if (const auto* found = scalar(key, "text")) into = found->text;
}

void section::number(std::string_view key, int& into, range<int> allowed) {
  const auto* found = scalar(key, "a whole number");
  if (found == nullptr) return;
  const auto& text = found->text;
  const bool is_number = is_digits(text.starts_with('-') ? std::string_view(text).substr(1) : text);
  if (!is_number || found->quoted) {
    complain(key, found->at,
             quote(text) + (is_number ? " is text, not a number: leave the quotes out"
                                      : " is not a whole number"));
    return;
  }
  int seen = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seen);
  if (error == std::errc{} && seen >= allowed.least && seen <= allowed.most) {
    into = seen;
    return;
  }
  complain(key, found->at,
           quote(text) + " is not in " + std::to_string(allowed.least) + ".." +
               std::to_string(allowed.most));
}

void section::duration(std::string_view key, milliseconds& into, range<milliseconds> allowed) {
  const auto* found = scalar(key, "a duration such as 250ms");
  if (found == nullptr) return;
  const auto seen = parse_duration(found->text);
  if (!seen) {
    complain(key, found->at, explain_duration(found->text));
  } else if (*seen < allowed.least || *seen > allowed.most) {
    complain(key, found->at,
             quote(found->text) + " is not in " + to_string(allowed.least) + ".." +
                 to_string(allowed.most));
  } else {
    into = *seen;
  }
}

std::optional<std::size_t> section::chosen_of(std::string_view key,
                                              const std::vector<std::string_view>& names) {
  const auto* found = scalar(key, listed(names));
  if (found == nullptr) return std::nullopt;
  const auto chosen = std::find(names.begin(), names.end(), found->text);
  if (chosen != names.end()) return static_cast<std::size_t>(chosen - names.begin());
  complain(key, found->at, quote(found->text) + " is not " + listed(names));
  return std::nullopt;
}

section section::child(std::string_view key) {
  const auto* found = value(key);
  if (found != nullptr && found->is != node::kind::mapping) {
    complain(key, found->at, "is " + std::string(kind_of(*found)) + ", not a mapping of keys");
    found = nullptr;
  }
  return section(found, path_of(key), out_);
}

void section::refuse(std::string_view key, std::string why) {
  refused_.emplace_back(key);
  if (const auto* found = find(key)) complain(key, found->at, std::move(why));
}

void section::refuse_unknown() {
  if (from_ == nullptr) return;
  if (from_->members.size() > most_members) {
    const auto size = std::to_string(from_->members.size());
    out_.problems.push_back({from_->at, path_.empty() ? "file" : path_,
                             "has " + size + " keys: is this a kubelane configuration?"});
    return;
  }
  const auto has = [](const std::vector<std::string>& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  for (const auto& each : from_->members) {
    if (has(known_, each.key) || has(refused_, each.key)) continue;
    const std::vector<std::string_view> names(known_.begin(), known_.end());
    const auto meant = nearest(each.key, known_);
    complain(each.key, each.at,
             meant ? "unknown key; did you mean `" + *meant + "`?"
                   : "unknown key; known here: " + listed(names));
  }
}

std::optional<milliseconds> parse_duration(std::string_view text) {
  const auto unit_at = text.find_first_not_of("0123456789");
  if (unit_at == 0 || unit_at == std::string_view::npos) return std::nullopt;
  const auto unit = text.substr(unit_at);
  const milliseconds one = unit == "ms" ? 1ms : unit == "s" ? 1s : unit == "m" ? 1min : 1h;
  if (one == 1h && unit != "h") return std::nullopt;
  long long count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + unit_at, count);
  if (error != std::errc{} || count > year / one) return year;
  return count * one;
}

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known) {
  std::optional<std::string> best;
  auto least = std::min<std::size_t>(2, word.size() / 3) + 1;
  for (const auto& each : known) {
    // Also keeps a key of a megabyte from costing one.
    if (word.size() > each.size() + 2 || each.size() > word.size() + 2) continue;
    const auto far = distance(folded(word), folded(each));
    if (far >= least) continue;
    least = far;
    best = each;
  }
  return best;
}

}  // namespace kubelane::config
