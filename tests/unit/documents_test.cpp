// What the documents promise each other: links that lead somewhere, figures that are in one place.

#include "config/load.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace kubelane {
namespace {

namespace fs = std::filesystem;

const fs::path root = KUBELANE_SOURCE;

std::string read(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

/// The documents that people read, by path from the root.
std::vector<fs::path> documents() {
  std::vector<fs::path> result = {"README.md", "ARCHITECTURE.md", "CHANGELOG.md"};
  for (const char* folder : {"docs", "deploy", "bench"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
      if (entry.path().extension() == ".md") result.push_back(fs::relative(entry.path(), root));
  }
  return result;
}

/// The anchor that a heading gets when it is rendered.
std::string anchor_of(const std::string& heading) {
  std::string result;
  for (const char c : heading) {
    if (c == ' ') result += '-';
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_')
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

std::set<std::string> anchors_of(const std::string& text) {
  std::set<std::string> result;
  bool is_code = false;
  for (const auto& line : lines_of(text)) {
    if (line.rfind("```", 0) == 0) is_code = !is_code;
    const auto title = line.find_first_not_of('#');
    if (!is_code && title != 0 && title != std::string::npos && line[title] == ' ')
      result.insert(anchor_of(line.substr(title + 1)));
  }
  return result;
}

/// The first block of `language` in a document.
std::string block_of(const std::string& text, const std::string& language) {
  const std::string fence = "```" + language + "\n";
  const auto begin = text.find(fence);
  if (begin == std::string::npos) return {};
  const auto body = begin + fence.size();
  return text.substr(body, text.find("\n```", body) + 1 - body);
}

TEST(Documents, EveryLinkBetweenThemLeadsSomewhere) {
  const std::regex link(R"(\]\(([^)# ]*)(#([^) ]+))?\))");
  std::size_t links = 0;
  for (const auto& document : documents()) {
    const auto text = read(root / document);
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) {
      const std::string file = (*at)[1];
      if (file.find("://") != std::string::npos) continue;
      const auto target = file.empty() ? root / document : root / document.parent_path() / file;
      EXPECT_TRUE(fs::exists(target)) << document << " links to " << file;
      if ((*at)[3].matched) {
        EXPECT_TRUE(anchors_of(read(target)).count((*at)[3])) << document << ": " << at->str();
      }
      ++links;
    }
  }
  EXPECT_GE(links, 5U);
}

TEST(Documents, TheReadmesComparisonIsCopiedFromTheBenchmarksPage) {
  const auto rows = lines_of(read(root / "docs/benchmark.md"));
  const auto readme = read(root / "README.md");
  const auto section = readme.find("## Beside nginx and HAProxy");
  ASSERT_NE(section, std::string::npos);
  std::size_t compared = 0;
  for (const auto& line : lines_of(readme.substr(section, readme.find("\n## ", section) - section)))
    if (line.rfind('|', 0) == 0) {
      EXPECT_TRUE(std::count(rows.begin(), rows.end(), line))
          << "not in docs/benchmark.md: " << line;
      ++compared;
    }
  EXPECT_GE(compared, 8U);
}

TEST(Documents, TheConfigurationsOfTheReadmeAndItsPageAreAccepted) {
  for (const char* document : {"README.md", "docs/configuration.md"}) {
    const auto text = block_of(read(root / document), "yaml");
    ASSERT_FALSE(text.empty()) << document;
    const auto loaded = config::load(text, {});
    if (loaded) continue;
    for (const auto& one : loaded.error().list)
      ADD_FAILURE() << config::describe(document, one, config::severity::error);
  }
}

}  // namespace
}  // namespace kubelane
