#include "inventory/listing.hpp"

#include "inventory/json.hpp"
#include "inventory/text.hpp"

#include <algorithm>
#include <set>

namespace kubelane::inventory {
namespace {

// Ansible's own variables, which it leaves out of its listing.
bool is_internal(std::string_view name) {
  static constexpr std::string_view names[] = {"ansible_diff_mode",
                                               "ansible_config_file",
                                               "ansible_facts",
                                               "ansible_forks",
                                               "ansible_inventory_sources",
                                               "ansible_limit",
                                               "ansible_playbook_python",
                                               "ansible_run_tags",
                                               "ansible_skip_tags",
                                               "ansible_verbosity",
                                               "ansible_version",
                                               "inventory_dir",
                                               "inventory_file",
                                               "inventory_hostname",
                                               "inventory_hostname_short",
                                               "groups",
                                               "group_names",
                                               "omit",
                                               "playbook_dir"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

class listing_reader {
 public:
  listing_reader(const value& root, model& into) : root_(root), model_(into) {}

  std::optional<refusal> run() {
    if (auto failure = take_group("all", 0)) return failure;
    for (const auto& entry : root_.members)
      if (entry.key != "_meta")
        if (auto failure = take_group(entry.key, 0)) return failure;
    const auto* vars = find(*find(root_, "_meta"), "hostvars");
    for (const auto& entry : vars->members) {
      if (!model_.find_host(entry.key))
        model_.add_host(entry.key, *model_.find_group("ungrouped"), {}, entry.at);
      for (const auto& one : entry.content.members)
        if (auto failure = model_.set_variable(entry.key, one.key, one.content))
          return refusal{"unreadable", one.at, *failure};
    }
    return std::nullopt;
  }

 private:
  std::optional<refusal> take_group(const std::string& name, int depth) {
    const auto* content = find(root_, name);
    const place at = content == nullptr ? root_.at : content->at;
    const int index = model_.add_group(name, at);
    if (content == nullptr || !done_.insert(name).second) return std::nullopt;
    if (depth > 200) return refusal{"unreadable", at, "groups nested too deeply"};
    if (const auto* hosts = find(*content, "hosts"))
      for (const auto& one : hosts->items)
        if (one.is == value::kind::text && !one.text.empty())
          model_.add_host(one.text, index, {}, one.at);
    if (const auto* vars = find(*content, "vars"))
      for (const auto& one : vars->members)
        if (auto failure = model_.set_variable(name, one.key, one.content))
          return refusal{"unreadable", one.at, *failure};
    const auto* children = find(*content, "children");
    if (children == nullptr) return std::nullopt;
    for (const auto& one : children->items) {
      if (one.is != value::kind::text || one.text.empty()) continue;
      if (auto failure = take_group(one.text, depth + 1)) return failure;
      if (auto failure = model_.add_child(index, one.text))
        return refusal{"unreadable", one.at, *failure};
    }
    return std::nullopt;
  }

  const value& root_;
  model& model_;
  std::set<std::string> done_;
};

std::string names(const std::vector<std::string>& list) {
  std::string result;
  for (const auto& name : list) result += (result.empty() ? "" : ", ") + json_text(name);
  return "[" + result + "]";
}

class listing_writer {
 public:
  explicit listing_writer(const model& of) : model_(of) {}

  std::string run() {
    take_group(0);
    std::string result = "{\n\"_meta\": {\"hostvars\": {";
    result += host_variables();
    result += "}}";
    for (const auto& [name, text] : groups_) result += ",\n" + json_text(name) + ": " + text;
    return result + "\n}\n";
  }

 private:
  void take_group(int index) {
    const auto& one = model_.groups[static_cast<std::size_t>(index)];
    if (!done_.insert(index).second) return;
    std::vector<std::string> hosts, children;
    for (const int i : one.hosts) hosts.push_back(model_.hosts[static_cast<std::size_t>(i)].name);
    for (const int i : one.children) {
      children.push_back(model_.groups[static_cast<std::size_t>(i)].name);
      take_group(i);
    }
    std::string text;
    if (!children.empty()) text += "\"children\": " + names(children);
    if (!hosts.empty() && index != 0)
      text += (text.empty() ? "\"hosts\": " : ", \"hosts\": ") + names(hosts);
    if (!text.empty()) groups_[one.name] = "{" + text + "}";
  }

  std::string host_variables() const {
    std::map<std::string, std::string> lines;
    for (const int i : model_.hosts_of("all")) {
      std::string text;
      for (const auto& [key, content] : model_.variables_of(i)) {
        if (is_internal(key)) continue;
        text += (text.empty() ? "\n  " : ",\n  ") + json_text(key) + ": " + write_json(*content);
      }
      if (!text.empty()) lines[model_.hosts[static_cast<std::size_t>(i)].name] = text;
    }
    std::string result;
    for (const auto& [name, text] : lines)
      result += (result.empty() ? "\n " : ",\n ") + json_text(name) + ": {" + text + "}";
    return result;
  }

  const model& model_;
  std::set<int> done_;
  std::map<std::string, std::string> groups_;
};

}  // namespace

bool is_listing(std::string_view text) {
  const auto stripped = strip(text);
  if (!stripped.starts_with('{') || stripped.find("\"_meta\"") == std::string_view::npos)
    return false;
  const auto document = read_json(text, -1);
  if (!document.root) return false;
  const auto* meta = find(*document.root, "_meta");
  return meta != nullptr && find(*meta, "hostvars") != nullptr;
}

std::optional<refusal> read_listing(std::string_view text, int file, model& into) {
  const auto document = read_json(text, file);
  const std::string shape = "; expected is what ansible-inventory --list prints";
  if (!document.root)
    return refusal{"unreadable", {file, document.error.line}, document.error.message + shape};
  const auto* meta = find(*document.root, "_meta");
  const auto* vars = meta == nullptr ? nullptr : find(*meta, "hostvars");
  if (vars == nullptr || vars->is != value::kind::mapping)
    return refusal{"unreadable", {file, 1}, "there is no `_meta.hostvars`" + shape};
  return listing_reader(*document.root, into).run();
}

std::string write_listing(const model& of) {
  return listing_writer(of).run();
}

}  // namespace kubelane::inventory
