#pragma once

namespace kubelane::proxy {

/// Gives back the memory that only reading a configuration, or the start, has needed: free heap,
/// and the mapped pages of code, of which those that run come back by themselves. Takes less than a
/// millisecond.
void give_memory_back();

}  // namespace kubelane::proxy
