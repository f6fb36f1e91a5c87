#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <memory>
#include <string>

namespace ringbolt::bench {

/// Memory that other processes can map, from the verbs library: ibv_alloc_buf of rdma-core 64, which older headers do
/// not declare. The symbol is looked up, so that a program runs on any verbs library. To be given back before `pd` is.
/// Throws std::runtime_error, also where the library has no such function.
std::shared_ptr<std::byte> shareable_memory(ibv_pd& pd, std::size_t length_bytes);

/// The file that the loader took the verbs from.
std::string verbs_library_path();

}  // namespace ringbolt::bench
