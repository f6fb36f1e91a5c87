#pragma once

#include <string>

#include "cluster/model.h"

namespace ringbolt::tools {

/// The four files that MLX and JACCL read, told apart by how they begin.
enum class MlxFormat { hostfile, host_list, ring, devices };

/// "mlx", "mlx-v1", "mlx-ring" or "jaccl", and back from one of these. Thread-safe.
const char* format_text(MlxFormat format);
MlxFormat parse_format(const std::string& text);
/// Of a text that is one of them. A device file has no text on its diagonal, and no address has none. Thread-safe.
MlxFormat format_of(const std::string& text);

/// Whether the text is meant for MLX or JACCL, and not a cluster file. Thread-safe.
bool is_mlx_file(const std::string& text);

/// load_cabling() of a text; `path` is what errors call it. Thread-safe.
cluster::Cluster parse_cabling(const std::string& path, const std::string& text);

/// The cluster of a file: a cluster file, or what MLX's launcher and JACCL take, whose pairs of devices are cables and
/// whose ranks are nodes, called as ssh calls them where that is fit to be a name. Throws base::Error or UsageError
/// that names the file and the place.
cluster::Cluster load_cabling(const std::string& path);

}  // namespace ringbolt::tools
