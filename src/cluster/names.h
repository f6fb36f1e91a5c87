#pragma once

#include <string_view>

namespace ringbolt::cluster {

/// True for the name of a cluster: 1 to 32 of [A-Za-z0-9_.-], not beginning with '.' or '-' (it names a folder and
/// is typed on command lines). Thread-safe. These checks stand between the text of a file and paths, command lines
/// and the synthetic sysfs: no name of a cluster, node, device or interface is ".." or holds '/', a space or a
/// control character.
bool is_cluster_name(std::string_view name);

/// True for the name of a node: as a cluster's, and not a number, since numbers address nodes too, nor "local", which
/// is the default device. Thread-safe.
bool is_node_name(std::string_view name);

/// True for the name of a verbs device: 1 to 32 of [A-Za-z0-9_], beginning with a letter (it names a folder of the
/// synthetic sysfs). Thread-safe.
bool is_device_name(std::string_view name);

/// True for the name of a network interface: 1 to 15 of [A-Za-z0-9_.-], not beginning with '.' or '-', and not "lo".
/// (The kernel takes more; these need no quoting anywhere.) Thread-safe.
bool is_netdev_name(std::string_view name);

/// True for what may stand for a profile in files: 1 to 128 of [a-z0-9=,._-]. Whether there is such a profile is
/// another matter. Thread-safe.
bool is_profile_text(std::string_view text);

/// True for what may stand for the streams of a port in files: 1 to 255 printable ASCII letters without space, quotes,
/// backslash and ';'. Whether there is such a stream is another matter. Thread-safe.
bool is_stream_text(std::string_view text);

/// True for an absolute path of printable ASCII of up to 255 bytes. Thread-safe. Spaces are allowed: whoever gives it
/// to a shell quotes it.
bool is_prefix(std::string_view path);

}  // namespace ringbolt::cluster
