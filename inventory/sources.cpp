#include "inventory/sources.hpp"

#include "inventory/hosts.hpp"
#include "inventory/listing.hpp"
#include "inventory/reader.hpp"
#include "inventory/vars.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <istream>
#include <iterator>

namespace kubelane::inventory {

namespace fs = std::filesystem;

std::optional<std::string> read_file(const std::string& path) {
  constexpr std::uintmax_t largest = 64 * 1024 * 1024;
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  const auto size = fs::file_size(path, error);
  if (error || size > largest) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  std::string text(size, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(size))) return std::nullopt;
  return text;
}

namespace {

constexpr const char* by_ansible =
    "let Ansible read it: ansible-inventory -i ... --list | kubelane inventory check -";

bool is_skipped(const std::string& name) {
  if (name.starts_with('.') || name == "host_vars" || name == "group_vars" ||
      name == "vars_plugins")
    return true;
  for (const char* ending : {".pyc", ".pyo", ".swp", ".bak", "~", ".rpm", ".md", ".txt", ".rst",
                             ".orig", ".ini", ".cfg", ".retry"})
    if (name.ends_with(ending)) return true;
  return false;
}

std::vector<std::string> entries(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator i(directory, error), end; !error && i != end; i.increment(error))
    names.push_back(i->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class source_reader {
 public:
  explicit source_reader(reading& into) : into_(into) {}

  void read(const std::string& source, std::istream& standard_input) {
    std::error_code error;
    if (source == "-") {
      const std::string text(std::istreambuf_iterator<char>(standard_input), {});
      take_listing(text, into_.inventory.add_file("stdin"));
    } else if (source.find(',') != std::string::npos && !fs::exists(source, error)) {
      take_host_list(source);
    } else {
      take_path(source, 0);
    }
  }

  bool any() const { return any_; }

 private:
  void refuse(place at, std::string message, std::string rule = "unreadable") {
    into_.findings.push_back({std::move(rule), severity::error, "", at, std::move(message)});
  }

  // Whether anything in it could be read.
  bool take_path(const std::string& path, int depth) {
    std::error_code error;
    if (!fs::is_directory(path, error)) return take_file(path);
    const int file = into_.inventory.add_file(path);
    bool parsed = false, tried = false;
    if (depth < 32) {
      for (const auto& name : entries(path)) {
        if (is_skipped(name)) continue;
        tried = true;
        parsed = take_path((fs::path(path) / name).string(), depth + 1) || parsed;
      }
    }
    if (depth == 0 && !tried)
      refuse({file, 0},
             "the directory has no inventory: in a directory Ansible skips .ini, .cfg and other "
             "endings; name the file itself");
    return parsed;
  }

  bool take_file(const std::string& path) {
    const int file = into_.inventory.add_file(path);
    const auto text = read_file(path);
    if (!text) {
      std::error_code error;
      const bool is_missing = !fs::exists(path, error) && !error;
      refuse({file, 0}, is_missing ? "there is no such file" : "cannot be read");
      into_.refused.push_back(path);
      return false;
    }
    const bool parsed = take_text(path, *text, file);
    if (!parsed) into_.refused.push_back(path);
    any_ = any_ || parsed;
    return parsed;
  }

  bool take_text(const std::string& path, const std::string& text, int file) {
    if (text.starts_with("#!") && ::access(path.c_str(), X_OK) == 0) {
      refuse({file, 1}, std::string("a script; kubelane runs none: ") + by_ansible);
      return false;
    }
    if (text.starts_with("$ANSIBLE_VAULT")) {
      refuse({file, 1}, std::string("encrypted with ansible-vault: ") + by_ansible);
      return false;
    }
    if (is_listing(text)) return take_listing(text, file);
    return take_inventory(path, text, file);
  }

  // YAML where the file's ending allows it, then INI: the order in which Ansible tries.
  bool take_inventory(const std::string& path, const std::string& text, int file) {
    const auto ending = fs::path(path).extension().string();
    const bool may_be_yaml =
        ending.empty() || ending == ".yml" || ending == ".yaml" || ending == ".json";
    std::optional<refusal> no_yaml, no_ini;
    bool is_plugin = false;
    auto before = into_.findings.size();
    if (may_be_yaml) {
      no_yaml = read_yaml_inventory(text, file, into_.inventory, into_.findings, is_plugin);
      if (!no_yaml) return true;
      into_.findings.resize(before);
      if (is_plugin) {
        refuse(no_yaml->at, no_yaml->message);
        return false;
      }
    }
    no_ini = read_ini(text, file, into_.inventory, into_.findings);
    if (!no_ini) return true;
    into_.findings.resize(before);
    explain(text, ending, no_yaml, *no_ini);
    return false;
  }

  void explain(const std::string& text, const std::string& ending,
               const std::optional<refusal>& no_yaml, const refusal& no_ini) {
    if (ending == ".toml") {
      refuse({no_ini.at.file, 0}, std::string("TOML is not read here: ") + by_ansible);
      return;
    }
    if (no_yaml && !looks_like_ini(text)) {
      refuse(no_yaml->at, no_yaml->message, no_yaml->rule);
      return;
    }
    auto message = no_ini.message;
    model scratch;
    std::vector<finding> ignored;
    bool is_plugin = false;
    if (!no_yaml && !looks_like_ini(text) &&
        !read_yaml_inventory(text, scratch.add_file(""), scratch, ignored, is_plugin)) {
      refuse({no_ini.at.file, no_ini.at.line},
             "the text is YAML, but Ansible reads a file that ends in " + ending +
                 " only as INI, and gets no hosts: rename it to .yml or .yaml");
      return;
    }
    refuse(no_ini.at, message, no_ini.rule);
  }

  // A section, or a host with variables, before anything that only YAML has.
  static bool looks_like_ini(const std::string& text) {
    std::size_t start = 0;
    while (start < text.size()) {
      const auto end = std::min(text.find('\n', start), text.size());
      const auto line = strip(std::string_view(text).substr(start, end - start));
      start = end + 1;
      if (line.empty() || line.front() == '#' || line.front() == ';') continue;
      if (line == "---" || line.ends_with(':') || line.front() == '{') return false;
      if (line.front() == '[') return true;
      return line.find('=') != std::string_view::npos || line.find(':') == std::string_view::npos;
    }
    return false;
  }

  bool take_listing(const std::string& text, int file) {
    if (auto failure = read_listing(text, file, into_.inventory)) {
      refuse(failure->at, failure->message);
      return false;
    }
    any_ = true;
    return true;
  }

  void take_host_list(const std::string& source) {
    const int file = into_.inventory.add_file(source);
    std::size_t start = 0;
    while (start <= source.size()) {
      const auto end = std::min(source.find(',', start), source.size());
      const auto name = strip(std::string_view(source).substr(start, end - start));
      start = end + 1;
      if (name.empty()) continue;
      // Ranges are not expanded here; Ansible keeps such a name as it is.
      auto expanded = name.find('[') == std::string_view::npos
                          ? expand_hosts(name)
                          : host_names{{std::string(name)}, {}, 1};
      const auto& host = expanded->names.front();
      if (!into_.inventory.find_host(host))
        into_.inventory.add_host(host, *into_.inventory.find_group("ungrouped"), expanded->port,
                                 {file, 0});
    }
    any_ = true;
  }

  reading& into_;
  bool any_ = false;
};

// `group_vars` and `host_vars` stand in a directory that is a source, or beside a file that is one.
std::vector<std::string> vars_directories(const std::vector<std::string>& sources) {
  std::vector<std::string> result;
  for (const auto& source : sources) {
    std::error_code error;
    if (source == "-") continue;
    if (source.find(',') != std::string::npos && !fs::exists(source, error)) continue;
    auto directory = source;
    if (!fs::is_directory(source, error)) directory = fs::path(source).parent_path().string();
    if (directory.empty()) directory = ".";
    while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
    // Equal ones: the last counts, for it overrides the first.
    std::erase(result, directory);
    result.push_back(std::move(directory));
  }
  return result;
}

}  // namespace

reading read(const std::vector<std::string>& sources, std::istream& standard_input) {
  reading result;
  source_reader reader(result);
  for (const auto& source : sources) reader.read(source, standard_input);
  if (reader.any()) result.inventory.reconcile();
  for (const auto& directory : vars_directories(sources))
    read_adjacent_vars(directory, result.inventory, result.findings);
  return result;
}

}  // namespace kubelane::inventory
