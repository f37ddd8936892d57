#include "inventory/hosts.hpp"
#include "inventory/reader.hpp"
#include "inventory/yaml_document.hpp"

namespace kubelane::inventory {
namespace {

std::string what_is(const value& of) {
  switch (of.is) {
    case value::kind::null:
      return "nothing";
    case value::kind::boolean:
    case value::kind::integer:
    case value::kind::real:
      return "`" + scalar_text(of) + "`";
    case value::kind::text:
      return "the text `" + of.text.substr(0, 40) + "`";
    case value::kind::list:
      return "a list";
    case value::kind::mapping:
      return "a mapping";
    case value::kind::vault:
      return "an encrypted value";
  }
  return {};
}

bool is_mapping_or_null(const value& of) {
  return of.is == value::kind::mapping || of.is == value::kind::null;
}

class yaml_reader {
 public:
  yaml_reader(model& into, std::vector<finding>& findings) : model_(into), findings_(findings) {}

  std::optional<refusal> group(const std::string& name, place at, const value& content) {
    if (!is_mapping_or_null(content)) {
      note("`" + name + "` is skipped: a group is a mapping, this is " + what_is(content), at);
      return std::nullopt;
    }
    if (name.empty()) return refusal{"unreadable", at, "a group without a name"};
    const int index = model_.add_group(name, at);
    if (content.is == value::kind::null) return std::nullopt;
    for (const auto& entry : content.members)
      if (auto failure = check(name, entry)) return failure;
    for (const auto& entry : content.members)
      if (auto failure = section(name, index, entry)) return failure;
    return std::nullopt;
  }

  std::optional<refusal> top(const member& entry) {
    if (!entry.key_is_text)
      return refusal{"unreadable", entry.at, "`" + entry.key + "` is no text, and so no group"};
    return group(entry.key, entry.at, entry.content);
  }

 private:
  static bool is_section(std::string_view key) {
    return key == "vars" || key == "children" || key == "hosts";
  }

  // A lone name may stand for a mapping of one.
  static std::optional<refusal> check(const std::string& name, const member& entry) {
    if (!is_section(entry.key) || is_mapping_or_null(entry.content) ||
        entry.content.is == value::kind::text)
      return std::nullopt;
    return refusal{"unreadable", entry.content.at,
                   "`" + entry.key + "` of `" + name + "` is " + what_is(entry.content) +
                       "; it has to be a mapping, each name followed by a colon"};
  }

  std::optional<refusal> section(const std::string& name, int index, const member& entry) {
    auto members = entry.content.members;
    if (entry.content.is == value::kind::text && is_section(entry.key))
      members = {{entry.content.text, entry.content.at, make_null(entry.content.at)}};
    else if (entry.content.is == value::kind::null)
      return std::nullopt;
    else if (entry.content.is != value::kind::mapping || !is_section(entry.key)) {
      note("`" + entry.key + "` of `" + name + "` is skipped: a group has hosts, children and vars",
           entry.at);
      return std::nullopt;
    }
    for (auto& one : members) {
      auto failure = entry.key == "vars"       ? variable(name, one)
                     : entry.key == "children" ? child(index, one)
                                               : hosts(index, one);
      if (failure) return failure;
    }
    return std::nullopt;
  }

  std::optional<refusal> variable(const std::string& name, member& one) {
    if (auto failure = model_.set_variable(name, one.key, std::move(one.content)))
      return refusal{"unreadable", one.at, *failure};
    return std::nullopt;
  }

  std::optional<refusal> child(int index, const member& one) {
    if (auto failure = top(one)) return failure;
    if (auto failure = model_.add_child(index, one.key))
      return refusal{"unreadable", one.at, *failure};
    return std::nullopt;
  }

  std::optional<refusal> hosts(int index, const member& one) {
    if (!one.key_is_text)
      return refusal{"unreadable", one.at,
                     "`" + one.key + "` is no text, and so no host: put it in quotes"};
    const auto expanded = expand_hosts(one.key);
    if (!expanded)
      return refusal{"unreadable", one.at, "`" + one.key + "`: " + expanded.error().message};
    expanded_ += expanded->work;
    if (expanded_ > most_hosts_of_a_file)
      return refusal{"unreadable", one.at, "more than 500000 hosts in one file"};
    if (is_true(one.content) && one.content.is != value::kind::mapping)
      return refusal{"unreadable", one.content.at,
                     "the host `" + one.key + "` has " + what_is(one.content) +
                         " where its variables go: a mapping"};
    for (const auto& name : expanded->names) {
      if (name.empty()) return refusal{"unreadable", one.at, "a host without a name"};
      model_.add_host(name, index, expanded->port, one.at);
      for (const auto& entry : one.content.members)
        if (auto failure = model_.set_variable(name, entry.key, entry.content))
          return refusal{"unreadable", entry.at, *failure};
    }
    return std::nullopt;
  }

  void note(std::string message, place at) {
    findings_.push_back({"unreadable", severity::warning, "", at, std::move(message)});
  }

  model& model_;
  std::vector<finding>& findings_;
  std::size_t expanded_ = 0;
};

void note_repeated(const yaml_document& document, std::vector<finding>& findings) {
  for (const auto& one : document.repeated) {
    if (one.parent != "hosts" && one.parent != "children") continue;
    findings.push_back({"duplicate-host", severity::warning,
                        one.parent == "hosts" ? one.what.key : "", one.what.last,
                        "`" + one.what.key + "` is in the same `" + one.parent +
                            "` twice; the last one counts, what the one at line " +
                            std::to_string(one.what.first.line) + " says is lost"});
  }
}

}  // namespace

std::optional<refusal> read_yaml_inventory(std::string_view text, int file, model& into,
                                           std::vector<finding>& findings, bool& is_plugin) {
  const auto document = read_yaml(text, file);
  is_plugin = false;
  if (!document.root)
    return refusal{"unreadable", {file, document.error.line}, document.error.message};
  const auto& root = *document.root;
  if (!is_true(root)) return refusal{"unreadable", {file, 0}, "the YAML document is empty"};
  if (root.is != value::kind::mapping)
    return refusal{"unreadable", root.at,
                   "a YAML inventory is a mapping of groups, this is " + what_is(root)};
  if (const auto* plugin = find(root, "plugin"); plugin != nullptr && is_true(*plugin)) {
    is_plugin = true;
    return refusal{"unreadable", plugin->at,
                   "a dynamic inventory (plugin " + scalar_text(*plugin) +
                       "); only Ansible can run it: ansible-inventory -i ... --list | kubelane "
                       "inventory check -"};
  }
  note_repeated(document, findings);
  yaml_reader reader(into, findings);
  for (const auto& entry : root.members)
    if (auto failure = reader.top(entry)) return failure;
  return std::nullopt;
}

}  // namespace kubelane::inventory
