#include "inventory/json.hpp"
#include "inventory/listing.hpp"
#include "inventory_case.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>

// Each case of tests/inventory/corpus is read as Ansible 2.14 read it; tests/inventory/record wrote
// the answers down.

namespace kubelane::inventory {
namespace {

namespace fs = std::filesystem;

const fs::path home = fs::path(KUBELANE_SOURCE) / "tests/inventory";

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

struct corpus_case {
  std::vector<std::string> sources;
  std::map<std::string, std::string> files;
};

corpus_case read_case(const fs::path& path) {
  corpus_case result;
  const auto text = contents(path);
  std::string name, first;
  for (std::size_t start = 0; start < text.size();) {
    const auto end = text.find('\n', start) + 1;
    const auto line = text.substr(start, end - start);
    start = end;
    if (line.starts_with("-- ") && line.ends_with(" --\n")) {
      name = line.substr(3, line.size() - 7);
      result.files[name];
      if (first.empty()) first = name;
    } else if (!name.empty()) {
      result.files[name] += line;
    } else if (line.starts_with("sources:")) {
      std::istringstream words(line.substr(8));
      result.sources.assign(std::istream_iterator<std::string>(words), {});
    }
  }
  if (result.sources.empty()) result.sources = {first};
  return result;
}

bool equal(const value& a, const value& b) {
  if (a.is != b.is || a.text != b.text || a.truth != b.truth || a.is_unsafe != b.is_unsafe)
    return false;
  if (a.number != b.number && !(std::isnan(a.number) && std::isnan(b.number))) return false;
  if (a.items.size() != b.items.size() || a.members.size() != b.members.size()) return false;
  if (!std::equal(a.items.begin(), a.items.end(), b.items.begin(), equal)) return false;
  return std::all_of(a.members.begin(), a.members.end(), [&](const member& entry) {
    const auto* other = find(b, entry.key);
    return other != nullptr && equal(entry.content, *other);
  });
}

std::vector<std::string> texts(const value& list) {
  std::vector<std::string> result;
  for (const auto& item : list.items) result.push_back(item.text);
  return result;
}

class Corpus : public testing::TestWithParam<std::string> {};

TEST_P(Corpus, IsReadAsAnsibleReadsIt) {
  const auto one = read_case(home / "corpus" / (GetParam() + ".case"));
  const auto answer = read_json(contents(home / "answers" / (GetParam() + ".json")), -1);
  ASSERT_TRUE(answer.root) << "no answer; run tests/inventory/record " << GetParam();
  const test::inventory_files files(one.files);

  const auto seen = files.read(one.sources);

  std::vector<std::string> refused;
  for (const auto& path : seen.refused)
    refused.push_back(fs::path(path).lexically_relative(files.path("")).string());
  std::sort(refused.begin(), refused.end());
  EXPECT_EQ(refused, texts(*find(*answer.root, "refused")));
  const bool has_error = std::any_of(seen.findings.begin(), seen.findings.end(),
                                     [](const auto& f) { return f.how == severity::error; });
  EXPECT_EQ(has_error, find(*answer.root, "failed")->truth || !refused.empty() ||
                           GetParam() == "directory-of-ini-alone");
  if (find(*answer.root, "failed")->truth) return;
  const auto text = write_listing(seen.inventory);
  const auto listed = read_json(text, -1);
  ASSERT_TRUE(listed.root) << listed.error.message << "\n" << text;
  EXPECT_TRUE(equal(*listed.root, *find(*answer.root, "list")))
      << text << "\nAnsible:\n"
      << write_json(*find(*answer.root, "list"));
}

TEST_P(Corpus, IsTheSameAfterAListing) {
  const auto one = read_case(home / "corpus" / (GetParam() + ".case"));
  const auto seen = test::inventory_files(one.files).read(one.sources);
  if (!seen.refused.empty()) return;  // what Ansible drops half way has no consistent listing
  const auto text = write_listing(seen.inventory);
  model again;
  EXPECT_FALSE(read_listing(text, again.add_file("stdin"), again));
  again.reconcile();
  EXPECT_EQ(write_listing(again), text);
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const auto& entry : fs::directory_iterator(home / "corpus"))
    result.push_back(entry.path().stem().string());
  std::sort(result.begin(), result.end());
  return result;
}

INSTANTIATE_TEST_SUITE_P(Inventory, Corpus, testing::ValuesIn(names()), [](const auto& one) {
  auto name = one.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(InventoryCorpus, HasAtLeastSixtyCases) {
  EXPECT_GE(names().size(), 60u);
}

}  // namespace
}  // namespace kubelane::inventory
