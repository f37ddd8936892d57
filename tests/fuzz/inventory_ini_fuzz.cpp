#include "inventory/listing.hpp"
#include "inventory/reader.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

// No INI text crashes, hangs, or leaves a model that cannot be written.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace inventory = kubelane::inventory;
  inventory::model read;
  std::vector<inventory::finding> findings;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)inventory::read_ini(text, read.add_file("hosts.ini"), read, findings);
  if (read.hosts.size() > 1000) return 0;  // ranges make many; writing them all finds nothing new
  read.reconcile();
  (void)inventory::write_listing(read);
  return 0;
}
