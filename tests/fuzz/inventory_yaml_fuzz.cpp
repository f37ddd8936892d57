#include "inventory/listing.hpp"
#include "inventory/reader.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

// No YAML or JSON text crashes, hangs, or leaves a model that cannot be written.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace inventory = kubelane::inventory;
  inventory::model read, listed;
  std::vector<inventory::finding> findings;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  bool is_plugin = false;
  (void)inventory::read_yaml_inventory(text, read.add_file("hosts.yml"), read, findings, is_plugin);
  (void)inventory::read_listing(text, listed.add_file("stdin"), listed);
  if (read.hosts.size() > 1000) return 0;  // ranges make many; writing them all finds nothing new
  read.reconcile();
  (void)inventory::write_listing(read);
  return 0;
}
