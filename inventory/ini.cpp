#include "inventory/hosts.hpp"
#include "inventory/literal.hpp"
#include "inventory/reader.hpp"
#include "inventory/text.hpp"

#include <algorithm>

namespace kubelane::inventory {
namespace {

enum class section { hosts, children, vars };

// A group that a section speaks of before it is declared.
struct pending_group {
  std::string name;
  section from = section::children;
  place at;
  std::vector<std::string> parents;
};

bool is_comment(std::string_view line) {
  return line.front() == '#' || line.front() == ';';
}

// A name without blanks, `:` or `]`, as long as it goes.
std::string_view take_name(std::string_view& text) {
  std::size_t size = 0;
  while (size < text.size()) {
    const auto point = first_code_point(text.substr(size));
    if (point.is == ':' || point.is == ']' || is_space(point.is)) break;
    size += point.size;
  }
  const auto name = text.substr(0, size);
  text.remove_prefix(size);
  return name;
}

bool only_comment(std::string_view text) {
  text = strip(text);
  return text.empty() || text.front() == '#';
}

struct header {
  std::string_view name;
  std::string_view kind;
};

// `[name]` or `[name:kind]`, and nothing after it but a comment.
std::optional<header> parse_header(std::string_view line) {
  if (line.front() != '[') return std::nullopt;
  line.remove_prefix(1);
  header found;
  found.name = take_name(line);
  if (found.name.empty() || line.empty()) return std::nullopt;
  if (line.front() == ':') {
    line.remove_prefix(1);
    std::size_t size = 0;
    while (size < line.size() && is_word(first_code_point(line.substr(size)).is))
      size += first_code_point(line.substr(size)).size;
    found.kind = line.substr(0, size);
    line.remove_prefix(size);
    if (size == 0 || line.empty()) return std::nullopt;
  }
  if (line.front() != ']' || !only_comment(line.substr(1))) return std::nullopt;
  return found;
}

class ini_reader {
 public:
  ini_reader(int file, model& into, std::vector<finding>& findings)
      : file_(file), model_(into), findings_(findings), current_("ungrouped") {}

  std::optional<refusal> run(std::string_view text) {
    for (const auto written : split_lines(text)) {
      ++line_;
      const auto line = strip(written);
      if (line.empty() || is_comment(line)) continue;
      if (auto failure = take(line)) return refusal{"unreadable", here(), *failure};
    }
    return undeclared();
  }

 private:
  place here() const { return {file_, line_}; }

  model::failure take(std::string_view line) {
    if (const auto found = parse_header(line)) return open(*found);
    if (line.front() == '[' && line.back() == ']')
      return "`" + std::string(line) +
             "` is no section: write [group], [group:children] or [group:vars], without blanks";
    switch (state_) {
      case section::hosts:
        return take_host(line);
      case section::children:
        return take_child(line);
      case section::vars:
        return take_variable(line);
    }
    return std::nullopt;
  }

  model::failure open(const header& found) {
    if (found.kind.empty() || found.kind == "hosts")
      state_ = section::hosts;
    else if (found.kind == "children")
      state_ = section::children;
    else if (found.kind == "vars")
      state_ = section::vars;
    else
      return "[" + std::string(found.name) + ":" + std::string(found.kind) +
             "] is no section: after `:` comes children or vars";
    current_ = found.name;
    if (!model_.find_group(current_)) {
      if (state_ == section::vars && find_pending(current_) == pending_.end())
        pending_.push_back({current_, section::vars, here(), {}});
      model_.add_group(current_, here());
    }
    const auto waiting = find_pending(current_);
    if (waiting == pending_.end() || state_ == section::vars) return std::nullopt;
    if (waiting->from == section::children) return adopt(current_);
    pending_.erase(waiting);
    return std::nullopt;
  }

  std::vector<pending_group>::iterator find_pending(std::string_view name) {
    return std::find_if(pending_.begin(), pending_.end(),
                        [&](const pending_group& one) { return one.name == name; });
  }

  // Puts a group, now declared, under those that named it before; and these under theirs.
  model::failure adopt(const std::string& name) {
    const auto parents = find_pending(name)->parents;
    for (const auto& parent : parents) {
      if (auto failure = model_.add_child(*model_.find_group(parent), name)) return failure;
      const auto above = find_pending(parent);
      if (above == pending_.end() || above->from != section::children) continue;
      if (parent == name) return "the group `" + name + "` contains itself";
      if (auto failure = adopt(parent)) return failure;
    }
    if (const auto own = find_pending(name); own != pending_.end()) pending_.erase(own);
    return std::nullopt;
  }

  model::failure take_host(std::string_view line) {
    const auto words = shell_words(line);
    if (!words) return "`" + std::string(line) + "`: " + words.error().message;
    if (words->empty() || words->front().empty()) return "a host without a name";
    const auto& pattern = words->front();
    const auto expanded = expand_hosts(pattern);
    if (!expanded) return "`" + pattern + "`: " + expanded.error().message;
    if (strip(pattern).ends_with(':') && !expanded->port)
      return "`" + pattern + "` ends in `:`; that is for a port, as in name:2222 (is this YAML?)";
    for (const auto& name : expanded->names)
      if (strip(name) == "---") return "`---` starts a YAML document, this is read as INI";
    expanded_ += expanded->work;
    if (expanded_ > most_hosts_of_a_file) return "more than 500000 hosts in one file";
    std::vector<member> found;
    for (std::size_t i = 1; i < words->size(); ++i)
      if (auto failure = take_assignment((*words)[i], found)) return failure;
    unite_keys(found);
    return add(*expanded, found);
  }

  model::failure take_assignment(const std::string& word, std::vector<member>& found) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) {
      const std::string note = word.front() == ';' ? "; a comment after a host starts with #"
                                                   : "; no blanks around `=`, quotes around blanks";
      return "`" + word + "` is no variable: after a host come name=value pairs" + note;
    }
    const auto text = word.substr(equals + 1);
    auto content = parse_literal(text, here());
    found.push_back(
        {word.substr(0, equals), here(), content ? std::move(*content) : make_text(text, here())});
    return std::nullopt;
  }

  model::failure add(const host_names& names, const std::vector<member>& vars) {
    const int group_index = *model_.find_group(current_);
    for (const auto& name : names.names) {
      if (name.empty()) return "a host without a name";
      note_repeated(name, group_index);
      model_.add_host(name, group_index, names.port, here());
      for (const auto& entry : vars)
        if (auto failure = model_.set_variable(name, entry.key, entry.content)) return failure;
    }
    return std::nullopt;
  }

  void note_repeated(const std::string& name, int group_index) {
    const auto index = model_.find_host(name);
    if (!index) return;
    const auto& memberships = model_.hosts[static_cast<std::size_t>(*index)].groups;
    if (std::find(memberships.begin(), memberships.end(), group_index) == memberships.end()) return;
    findings_.push_back({"duplicate-host", severity::notice, name, here(),
                         name + " is in [" + current_ + "] twice; Ansible counts it once"});
  }

  model::failure take_child(std::string_view line) {
    auto rest = line;
    const auto name = take_name(rest);
    if (name.empty() || !only_comment(rest))
      return "`" + std::string(line) + "` is no group name; a :children section has one a line";
    if (model_.find_group(name)) return model_.add_child(*model_.find_group(current_), name);
    const auto waiting = find_pending(name);
    if (waiting != pending_.end())
      waiting->parents.push_back(current_);
    else
      pending_.push_back({std::string(name), section::children, here(), {current_}});
    return std::nullopt;
  }

  model::failure take_variable(std::string_view line) {
    const auto equals = line.find('=');
    if (equals == std::string_view::npos)
      return "`" + std::string(line) + "` is no variable: write name=value";
    const auto key = strip(line.substr(0, equals));
    const auto text = strip(line.substr(equals + 1));
    auto content = parse_literal(text, here());
    return model_.set_variable(
        current_, key, content ? std::move(*content) : make_text(std::string(text), here()));
  }

  std::optional<refusal> undeclared() {
    if (pending_.empty()) return std::nullopt;
    const auto& first = pending_.front();
    if (first.from == section::vars)
      return refusal{"unknown-group", first.at,
                     "[" + first.name + ":vars] is about a group that is not declared" +
                         meant(first.name) + "; Ansible drops the whole file"};
    return refusal{"unknown-group", first.at,
                   "[" + first.parents.back() + ":children] names the group `" + first.name +
                       "`, which is not declared" + meant(first.name) +
                       "; Ansible drops the whole file"};
  }

  std::string meant(const std::string& name) const {
    std::vector<std::string> candidates;
    for (const auto& one : model_.groups)
      if (find_if(pending_.begin(), pending_.end(), [&](const pending_group& waiting) {
            return waiting.name == one.name;
          }) == pending_.end())
        candidates.push_back(one.name);
    candidates.insert(candidates.end(), known_groups().begin(), known_groups().end());
    const auto best = nearest(name, candidates);
    return best.empty() ? "" : " (did you mean " + best + "?)";
  }

  int file_;
  model& model_;
  std::vector<finding>& findings_;
  int line_ = 0;
  std::size_t expanded_ = 0;
  std::string current_;
  section state_ = section::hosts;
  std::vector<pending_group> pending_;
};

}  // namespace

std::optional<refusal> read_ini(std::string_view text, int file, model& into,
                                std::vector<finding>& findings) {
  return ini_reader(file, into, findings).run(text);
}

const std::vector<std::string>& known_groups() {
  static const std::vector<std::string> names = {"kube_control_plane",
                                                 "etcd",
                                                 "kube_node",
                                                 "k8s_cluster",
                                                 "calico_rr",
                                                 "no_floating",
                                                 "bastion",
                                                 "broken_etcd",
                                                 "broken_kube_control_plane"};
  return names;
}

}  // namespace kubelane::inventory
