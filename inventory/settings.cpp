#include "inventory/settings.hpp"

#include <charconv>

namespace kubelane::inventory {

std::string with_place(const model& in, std::string_view name, place at) {
  const auto where = in.describe(at);
  return where.empty() ? std::string(name) : std::string(name) + " at " + where;
}

void settings::once(finding what) const {
  const auto key =
      what.rule + std::to_string(what.at.file) + ":" + std::to_string(what.at.line) + what.message;
  if (said_.insert(key).second) findings_.push_back(std::move(what));
}

setting settings::get(int host, std::string_view key) const {
  const auto* found = model_.variable(host, key);
  if (found == nullptr) return {};
  const bool encrypted = found->is == value::kind::vault;
  if (!encrypted && !has_template(*found)) return {setting::state::set, found};
  const std::string what = encrypted ? "is encrypted" : "is a template";
  once({"needs-template", severity::warning, "", found->at,
        std::string(key) + " " + what +
            ", which only Ansible resolves: ansible-inventory --list resolves vaults, and "
            "`ansible -m debug -a var=" +
            std::string(key) + "` shows its value"});
  return {setting::state::unknown, found};
}

std::optional<bool> settings::truth(int host, std::string_view key, bool otherwise,
                                    std::string_view rule) const {
  const auto found = get(host, key);
  if (found.is == setting::state::unset) return otherwise;
  if (found.is == setting::state::unknown) return std::nullopt;
  if (found.content->is == value::kind::text)
    for (const char* word : {"false", "no", "off", "False", "No", "FALSE", "NO"})
      if (found.content->text == word)
        once({std::string(rule), severity::warning, "", found.at(),
              std::string(key) + " is the text `" + word +
                  "`, which templates take for true: write False in INI, false in YAML"});
  return is_true(*found.content);
}

std::optional<int> settings::port(int host, std::string_view key, int otherwise) const {
  const auto found = get(host, key);
  if (found.is == setting::state::unset) return otherwise;
  if (found.is == setting::state::unknown) return std::nullopt;
  const auto text = scalar_text(*found.content);
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size() && number >= 1 && number <= 65535)
    return number;
  once({"port-conflict", severity::error, "", found.at(),
        std::string(key) + " is " + text + "; a port is a number in 1..65535"});
  return std::nullopt;
}

std::optional<std::string> settings::text(int host, std::string_view key,
                                          std::string_view otherwise) const {
  const auto found = get(host, key);
  if (found.is == setting::state::unset) return std::string(otherwise);
  if (found.is == setting::state::unknown) return std::nullopt;
  return scalar_text(*found.content);
}

}  // namespace kubelane::inventory
