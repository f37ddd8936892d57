// traffic serve PORT
// traffic load PORT [STREAMS PINGERS SILENT ANSWERS FRESH_EVERY_MS]

#include "client.hpp"
#include "server.hpp"

#include <cstdlib>
#include <iostream>
#include <string_view>
#include <vector>

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  const auto number = [&](std::size_t i, int otherwise) {
    return i < words.size() ? std::atoi(words[i].data()) : otherwise;
  };
  const auto port = static_cast<std::uint16_t>(number(1, 0));
  if (words.size() == 2 && words[0] == "serve") {
    traffic::serve(port);
    return 0;
  }
  if (words.size() >= 2 && words[0] == "load") {
    const traffic::load usual;
    return traffic::run_load(port, {.streams = number(2, usual.streams),
                                    .pingers = number(3, usual.pingers),
                                    .silent = number(4, usual.silent),
                                    .answers = number(5, usual.answers),
                                    .fresh_every = number(6, usual.fresh_every)});
  }
  std::cerr << "usage: traffic serve PORT | load PORT [STREAMS PINGERS SILENT ANSWERS FRESH_MS]\n";
  return 64;
}
