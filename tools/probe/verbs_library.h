#pragma once

#include <string>

#include "verbs/library.h"

namespace ringbolt::tools {

/// The library that `wanted` means: "ours" (beside this command), "system" (the distribution's, wherever
/// LD_LIBRARY_PATH leads), or a path. Throws UsageError if there is none.
std::string verbs_path(const std::string& wanted);

/// Opens the library at that path, which must also have what measurements need beyond any library: address handles,
/// completion channels, ibv_query_device. Throws base::Error naming the library, or the calls that it lacks.
verbs::Library open_verbs(const std::string& path);

}  // namespace ringbolt::tools
