#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ringbolt::cluster {

/// The whole of a regular file. Throws base::Error if it can't be read, is no regular file or holds more than
/// `most_bytes`. Thread-safe. Follows symbolic links; a FIFO or device is refused rather than waited for. Errors:
/// EISDIR, EINVAL (no regular file), EFBIG, else the errno of open, fstat or read.
std::string read_file(const std::string& path, size_t most_bytes);

/// Makes a file of mode 0600 with these bytes; refuses to replace one. Throws base::Error, naming the path, and then
/// leaves no partial file. Thread-safe. Nothing is synced to the disk. A reader may see a part while it is written:
/// whoever minds writes under another name and renames.
void write_new_file(const std::string& path, std::string_view bytes);

/// Puts a file of mode 0600 with these bytes in the place of what is there, by way of one named `path`.new: a reader
/// sees the old or the new text, whole. Throws base::Error; the old file is there then. One at a time of a path: the
/// caller holds what keeps others off. Nothing is synced to the disk.
void replace_file(const std::string& path, std::string_view bytes);

/// The names of what is in a folder, in order; none where there is no such folder. Throws base::Error where that can't
/// be found out. Thread-safe.
std::vector<std::string> names_in(const std::string& folder);

}  // namespace ringbolt::cluster
