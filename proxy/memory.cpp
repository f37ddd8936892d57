#include "proxy/memory.hpp"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

namespace kubelane::proxy {
namespace {

// Code and constants are clean copies of their file, so that nothing is lost; a page that is used
// again is mapped again. A debugger's breakpoints are lost.
void unmap_clean_pages(const dl_phdr_info& of) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < of.dlpi_phnum; ++i) {
    const auto& segment = of.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const auto begin = (of.dlpi_addr + segment.p_vaddr) / page * page;
    const auto end = of.dlpi_addr + segment.p_vaddr + segment.p_memsz;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
}

}  // namespace

void give_memory_back() {
  malloc_trim(0);
  const auto each = [](dl_phdr_info* loaded, std::size_t, void*) {
    if (std::strstr(loaded->dlpi_name, "vdso") == nullptr) unmap_clean_pages(*loaded);
    return 0;
  };
  dl_iterate_phdr(each, nullptr);
}

}  // namespace kubelane::proxy
