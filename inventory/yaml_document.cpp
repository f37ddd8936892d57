#include "inventory/yaml_document.hpp"

#include "inventory/yaml_scalar.hpp"

#include <yaml.h>

#include <algorithm>
#include <unordered_map>

namespace kubelane::inventory {
namespace {

constexpr std::size_t most_values = 2'000'000;
constexpr std::size_t deepest = 200;
constexpr std::string_view standard = "tag:yaml.org,2002:";

std::size_t count(const value& of) {
  std::size_t total = 1;
  for (const auto& item : of.items) total += count(item);
  for (const auto& entry : of.members) total += count(entry.content);
  return total;
}

void mark_unsafe(value& of) {
  of.is_unsafe = of.is == value::kind::text;
  for (auto& item : of.items) mark_unsafe(item);
  for (auto& entry : of.members) mark_unsafe(entry.content);
}

std::string_view text_of(const yaml_char_t* text) {
  return text == nullptr ? std::string_view() : reinterpret_cast<const char*>(text);
}

// A list or mapping under construction.
struct open_value {
  value content;
  std::string anchor;
  std::optional<member> key;  // of a mapping: read, its value is next
  bool is_unsafe = false;
  bool is_merge = false;       // the key is `<<`
  std::vector<member> merged;  // from `<<`, before the mapping's own
};

class builder {
 public:
  explicit builder(int file) : file_(file) {}

  // False if the document is refused; `error` says why.
  bool scalar(const yaml_event_t& event) {
    const auto& data = event.data.scalar;
    const std::string_view text(reinterpret_cast<const char*>(data.value), data.length);
    const place at{file_, static_cast<int>(event.start_mark.line) + 1};
    const bool is_key =
        !open_.empty() && open_.back().content.is == value::kind::mapping && !open_.back().key;
    const bool plain = data.plain_implicit != 0 && data.tag == nullptr;
    if (is_key && plain && text == "<<") {
      open_.back().key = member{"<<", at, {}};
      open_.back().is_merge = true;
      return true;
    }
    if (is_key && plain && text == "=") return attach(make_text("=", at), {});
    auto result = resolve(data, text, at);
    if (!result) return fail("`" + std::string(text.substr(0, 40)) + "` does not fit its tag", at);
    return attach(std::move(*result), text_of(data.anchor));
  }

  bool open(value::kind kind, const yaml_event_t& event, const yaml_char_t* anchor,
            const yaml_char_t* tag) {
    const place at{file_, static_cast<int>(event.start_mark.line) + 1};
    if (open_.size() >= deepest) return fail("nested too deeply", at);
    if (!key_fits(at)) return false;
    const auto name = text_of(tag);
    const std::string_view own = kind == value::kind::list ? "seq" : "map";
    if (!name.empty() && name != "!" && name != "!unsafe" &&
        name != std::string(standard) + own.data())
      return fail("the tag `" + std::string(name) + "` is not one Ansible knows here", at);
    open_value opened;
    opened.content.is = kind;
    opened.content.at = at;
    opened.anchor = text_of(anchor);
    opened.is_unsafe = name == "!unsafe";
    if (!opened.anchor.empty() && !reserve(opened.anchor, at)) return false;
    open_.push_back(std::move(opened));
    return true;
  }

  bool close() {
    auto done = std::move(open_.back());
    open_.pop_back();
    if (done.content.is == value::kind::mapping) unite(done);
    if (done.is_unsafe) mark_unsafe(done.content);
    if (!done.anchor.empty()) anchors_[done.anchor] = done.content;
    return place_value(std::move(done.content));
  }

  bool alias(const yaml_event_t& event) {
    const place at{file_, static_cast<int>(event.start_mark.line) + 1};
    const std::string name(text_of(event.data.alias.anchor));
    const auto found = anchors_.find(name);
    if (found == anchors_.end()) return fail("`*" + name + "` has no anchor before it", at);
    if (!found->second) return fail("`*" + name + "` stands inside its own anchor", at);
    values_ += count(*found->second);
    if (values_ > most_values) return fail("more than two million values", at);
    return place_value(*found->second);
  }

  bool fail(std::string message, place at) {
    error = {std::move(message), at.line};
    return false;
  }

  syntax_error error;
  std::optional<value> root;
  std::vector<repeated_yaml_key> repeated;

 private:
  using scalar_data = decltype(yaml_event_t::data.scalar);

  static std::optional<value> resolve(const scalar_data& data, std::string_view text, place at) {
    const auto tag = text_of(data.tag);
    if (tag.empty())
      return data.plain_implicit != 0 ? resolve_plain(text, at) : make_text(std::string(text), at);
    if (tag == "!" || tag == "!unsafe" || tag == "tag:yaml.org,2002:str") {
      auto result = make_text(std::string(text), at);
      result.is_unsafe = tag == "!unsafe";
      return result;
    }
    if (tag == "!vault" || tag == "!vault-encrypted") {
      auto result = make_text(std::string(text), at);
      result.is = value::kind::vault;
      return result;
    }
    if (tag.substr(0, standard.size()) != standard) return std::nullopt;
    return resolve_tagged(tag.substr(standard.size()), text, at);
  }

  bool reserve(const std::string& anchor, place at) {
    if (anchors_.emplace(anchor, std::nullopt).second) return true;
    return fail("the anchor `&" + anchor + "` is there twice", at);
  }

  bool attach(value result, std::string_view anchor) {
    if (!anchor.empty()) {
      if (!reserve(std::string(anchor), result.at)) return false;
      anchors_[std::string(anchor)] = result;
    }
    return place_value(std::move(result));
  }

  // Lists and mappings are no keys.
  bool key_fits(place at) {
    if (open_.empty() || open_.back().content.is != value::kind::mapping || open_.back().key)
      return true;
    return fail("a list or a mapping cannot be a key", at);
  }

  bool place_value(value result) {
    if (++values_ > most_values) return fail("more than two million values", result.at);
    if (open_.empty()) {
      root = std::move(result);
      return true;
    }
    auto& into = open_.back();
    if (into.content.is == value::kind::list) {
      into.content.items.push_back(std::move(result));
      return true;
    }
    if (!into.key) {
      if (result.is == value::kind::list || result.is == value::kind::mapping)
        return key_fits(result.at);
      into.key = member{scalar_text(result), result.at, {}, result.is == value::kind::text};
      return true;
    }
    if (into.is_merge) return take_merge(into, std::move(result));
    auto entry = std::move(*into.key);
    into.key.reset();
    entry.content = std::move(result);
    into.content.members.push_back(std::move(entry));
    return true;
  }

  bool take_merge(open_value& into, value from) {
    into.key.reset();
    into.is_merge = false;
    if (from.is == value::kind::mapping) {
      for (auto& entry : from.members) into.merged.push_back(std::move(entry));
      return true;
    }
    if (from.is != value::kind::list) return fail("`<<` needs a mapping", from.at);
    for (auto item = from.items.rbegin(); item != from.items.rend(); ++item) {
      if (item->is != value::kind::mapping) return fail("`<<` needs mappings", item->at);
      for (auto& entry : item->members) into.merged.push_back(std::move(entry));
    }
    return true;
  }

  void unite(open_value& into) {
    const bool has_parent = !open_.empty() && open_.back().key;
    for (auto& what : unite_keys(into.content.members))
      repeated.push_back({has_parent ? open_.back().key->key : "", std::move(what)});
    if (into.merged.empty()) return;
    auto own = std::move(into.content.members);
    into.content.members = std::move(into.merged);
    for (auto& entry : own) into.content.members.push_back(std::move(entry));
    unite_keys(into.content.members);
  }

  int file_;
  std::size_t values_ = 0;
  std::vector<open_value> open_;
  std::unordered_map<std::string, std::optional<value>> anchors_;
};

class event_source {
 public:
  explicit event_source(std::string_view text) {
    yaml_parser_initialize(&parser_);
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  event_source(const event_source&) = delete;
  event_source& operator=(const event_source&) = delete;
  ~event_source() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }

  // Null if the text is no YAML.
  const yaml_event_t* next() {
    yaml_event_delete(&event_);
    return yaml_parser_parse(&parser_, &event_) != 0 ? &event_ : nullptr;
  }

  syntax_error error() const {
    std::string message = parser_.problem == nullptr ? "no YAML" : parser_.problem;
    if (parser_.context != nullptr) message += std::string(" ") + parser_.context;
    return {std::move(message), static_cast<int>(parser_.problem_mark.line) + 1};
  }

 private:
  yaml_parser_t parser_{};
  yaml_event_t event_{};
};

bool take(builder& into, const yaml_event_t& event) {
  switch (event.type) {
    case YAML_SCALAR_EVENT:
      return into.scalar(event);
    case YAML_ALIAS_EVENT:
      return into.alias(event);
    case YAML_SEQUENCE_START_EVENT:
      return into.open(value::kind::list, event, event.data.sequence_start.anchor,
                       event.data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
      return into.open(value::kind::mapping, event, event.data.mapping_start.anchor,
                       event.data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
      return into.close();
    case YAML_DOCUMENT_START_EVENT:
      if (!into.root) return true;
      return into.fail("a second document (`---`) in one file",
                       {0, static_cast<int>(event.start_mark.line) + 1});
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
      return true;
  }
  return true;
}

}  // namespace

yaml_document read_yaml(std::string_view text, int file) {
  yaml_document result;
  if (auto json = read_json(text, file); json.root) {
    result.root = std::move(json.root);
    return result;
  }
  builder into(file);
  event_source events(text);
  while (const auto* event = events.next()) {
    if (!take(into, *event)) {
      result.error = std::move(into.error);
      return result;
    }
    if (event->type != YAML_STREAM_END_EVENT) continue;
    result.root = into.root ? std::move(*into.root) : make_null({file, 1});
    result.repeated = std::move(into.repeated);
    return result;
  }
  result.error = events.error();
  return result;
}

}  // namespace kubelane::inventory
