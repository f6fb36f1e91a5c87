#pragma once

#include <cstdio>
#include <memory>
#include <string>

namespace ringbolt::tools {

/// The file of an option such as --html. Opened before measuring: minutes of work must not end at a mistyped path. Not
/// thread-safe.
class PageFile {
 public:
  /// `path`: "-" for stdout; empty for none, then write() does nothing. `option` gave it. Throws base::Error.
  explicit PageFile(const std::string& path, std::string option = "--html");

  /// Throws base::Error.
  /// Behind what was written before, and flushed at once. What was in the file is gone since the constructor.
  void write(const std::string& text);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string path_;
  std::string option_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace ringbolt::tools
