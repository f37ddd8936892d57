#include "inventory/vars.hpp"

#include "inventory/sources.hpp"
#include "inventory/yaml_document.hpp"

#include <algorithm>
#include <filesystem>
#include <unordered_set>

namespace kubelane::inventory {
namespace {

namespace fs = std::filesystem;

bool is_vars_ending(const std::string& ending) {
  return ending.empty() || ending == ".yml" || ending == ".yaml" || ending == ".json";
}

// A `group_vars` or `host_vars` directory. Its names are read once: a fleet has thousands.
class vars_directory {
 public:
  explicit vars_directory(fs::path path) : path_(std::move(path)) {
    std::error_code error;
    for (fs::directory_iterator i(path_, error), end; !error && i != end; i.increment(error))
      names_.insert(i->path().filename().string());
  }

  bool empty() const { return names_.empty(); }

  std::vector<fs::path> files_of(const std::string& name) const {
    if (name.starts_with('/') || name.empty()) return {};
    for (const char* ending : {"", ".yml", ".yaml", ".json"}) {
      if (!exists(name + ending)) continue;
      const auto path = path_ / (name + ending);
      std::error_code error;
      if (!fs::is_directory(path, error)) return {path};
      std::vector<fs::path> files;
      collect(path, files, 0);
      return files;
    }
    return {};
  }

 private:
  bool exists(const std::string& name) const {
    std::error_code error;
    if (name.find('/') != std::string::npos || name == "." || name == "..")
      return fs::exists(path_ / name, error);
    return names_.contains(name);
  }

  static void collect(const fs::path& directory, std::vector<fs::path>& files, int depth) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator i(directory, error), end; !error && i != end; i.increment(error))
      names.push_back(i->path().filename().string());
    std::sort(names.begin(), names.end());
    for (const auto& name : names) {
      if (name.starts_with('.') || name.ends_with('~')) continue;
      const auto path = directory / name;
      const auto ending = path.extension().string();
      if (fs::is_directory(path, error)) {
        if (ending.empty() && depth < 32) collect(path, files, depth + 1);
      } else if (is_vars_ending(ending)) {
        files.push_back(path);
      }
    }
  }

  fs::path path_;
  std::unordered_set<std::string> names_;
};

class vars_reader {
 public:
  vars_reader(model& into, std::vector<finding>& findings) : model_(into), findings_(findings) {}

  void read(const fs::path& path, variables& to) {
    const int file = model_.add_file(path.string());
    const auto text = read_file(path.string());
    if (!text) return refuse({file, 0}, "cannot be read");
    if (text->starts_with("$ANSIBLE_VAULT"))
      return refuse({file, 1},
                    "encrypted with ansible-vault; let Ansible read it: ansible-inventory -i ... "
                    "--list --ask-vault-pass | kubelane inventory check -");
    auto document = read_yaml(*text, file);
    if (!document.root)
      return refuse({file, document.error.line}, document.error.message + "; Ansible stops here");
    if (!is_true(*document.root)) return;
    if (document.root->is != value::kind::mapping)
      return refuse(document.root->at, "a file of variables is a mapping; Ansible stops here");
    for (auto& entry : document.root->members)
      to.insert_or_assign(std::move(entry.key), std::move(entry.content));
  }

 private:
  void refuse(place at, std::string message) {
    findings_.push_back({"unreadable", severity::error, "", at, std::move(message)});
  }

  model& model_;
  std::vector<finding>& findings_;
};

}  // namespace

void read_adjacent_vars(const std::string& directory, model& into, std::vector<finding>& findings) {
  adjacent_vars result;
  result.directory = directory;
  result.groups.resize(into.groups.size());
  result.hosts.resize(into.hosts.size());
  vars_reader reader(into, findings);
  const auto base = directory == "." ? fs::path() : fs::path(directory);
  const vars_directory groups(base / "group_vars");
  if (!groups.empty())
    for (std::size_t i = 0; i < into.groups.size(); ++i)
      for (const auto& path : groups.files_of(into.groups[i].name))
        reader.read(path, result.groups[i]);
  const vars_directory hosts(base / "host_vars");
  if (!hosts.empty())
    for (std::size_t i = 0; i < into.hosts.size(); ++i)
      for (const auto& path : hosts.files_of(into.hosts[i].name))
        reader.read(path, result.hosts[i]);
  into.adjacent.push_back(std::move(result));
}

void read_group_vars_of(int group_index, model& into, std::vector<finding>& findings) {
  vars_reader reader(into, findings);
  for (auto& source : into.adjacent) {
    source.groups.resize(into.groups.size());
    const auto base = source.directory == "." ? fs::path() : fs::path(source.directory);
    const vars_directory groups(base / "group_vars");
    for (const auto& path :
         groups.files_of(into.groups[static_cast<std::size_t>(group_index)].name))
      reader.read(path, source.groups[static_cast<std::size_t>(group_index)]);
  }
}

}  // namespace kubelane::inventory
