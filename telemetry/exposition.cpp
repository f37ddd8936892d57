#include "telemetry/exposition.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace kubelane::telemetry {
namespace {

constexpr double largest_whole = 9'007'199'254'740'992.0;  // 2^53: whole numbers are exact below

std::string in_words(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  if (value == std::floor(value) && std::abs(value) < largest_whole)
    return std::to_string(static_cast<std::int64_t>(value));
  std::array<char, 32> text;
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), end};
}

/// `name="value"`, after a comma if it is not the first.
void append_label(std::string& out, const char* name, std::string_view value) {
  if (out.back() != '{') out += ',';
  out += name;
  out += "=\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  out += '"';
}

}  // namespace

std::string exposition::render() const {
  std::string out;
  out.reserve(16 * 1024);
  for (const auto* each : all_) each->render(out);
  return out;
}

void exposition::forget(std::string_view upstream) {
  for (auto* each : all_) each->forget(upstream);
}

family::family(exposition& all, const family_name& named, const char* type)
    : named_(named), type_(type) {
  all.all_.push_back(this);
}

bool family::is_of(const labels& series, std::string_view upstream) const {
  constexpr std::string_view label = "upstream";
  const auto is_labelled = [&](const char* name) { return name != nullptr && name == label; };
  return (is_labelled(named_.labels[0]) && series.first == upstream) ||
         (is_labelled(named_.labels[1]) && series.second == upstream);
}

void family::render_head(std::string& out) const {
  out.append("# HELP ").append(named_.name).append(" ").append(named_.help);
  out.append("\n# TYPE ").append(named_.name).append(" ").append(type_).append("\n");
}

void family::render_series(std::string& out, std::string_view suffix, const labels& of,
                           std::string_view le, double value) const {
  out.append(named_.name).append(suffix);
  if (named_.labels[0] != nullptr || !le.empty()) {
    out += '{';
    if (!le.empty()) append_label(out, "le", le);
    if (named_.labels[0] != nullptr) append_label(out, named_.labels[0], of.first);
    if (named_.labels[1] != nullptr) append_label(out, named_.labels[1], of.second);
    out += '}';
  }
  out.append(" ").append(in_words(value)).append("\n");
}

values::values(exposition& all, type what, const family_name& named)
    : family(all, named, what == type::counter ? "counter" : "gauge") {}

// From where the last one was: a scrape sets all of them in their order.
double& values::at(std::string_view first, std::string_view second) {
  for (std::size_t i = 0; i < series_.size(); ++i, ++next_) {
    if (next_ >= series_.size()) next_ = 0;
    auto& each = series_[next_];
    if (each.of.first == first && each.of.second == second) {
      ++next_;
      return each.value;
    }
  }
  return series_.emplace_back(series{{std::string(first), std::string(second)}}).value;
}

void values::forget(std::string_view upstream) {
  std::erase_if(series_, [&](const series& each) { return is_of(each.of, upstream); });
}

void values::render(std::string& out) const {
  render_head(out);
  for (const auto& each : series_) render_series(out, "", each.of, "", each.value);
}

durations::durations(exposition& all, const family_name& named) : family(all, named, "histogram") {}

void durations::observe(std::string_view first, double seconds) {
  auto found = std::find_if(series_.begin(), series_.end(),
                            [&](const series& each) { return each.of.first == first; });
  if (found == series_.end()) found = series_.insert(found, series{{std::string(first), {}}});
  const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), seconds) - bounds.begin();
  ++found->counts[static_cast<std::size_t>(bucket)];
  found->sum += seconds;
}

void durations::forget(std::string_view upstream) {
  std::erase_if(series_, [&](const series& each) { return is_of(each.of, upstream); });
}

void durations::render(std::string& out) const {
  render_head(out);
  for (const auto& each : series_) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < each.counts.size(); ++i) {
      count += each.counts[i];
      const auto le = i < bounds.size() ? in_words(bounds[i]) : std::string("+Inf");
      render_series(out, "_bucket", each.of, le, static_cast<double>(count));
    }
    render_series(out, "_sum", each.of, "", each.sum);
    render_series(out, "_count", each.of, "", static_cast<double>(count));
  }
}

}  // namespace kubelane::telemetry
