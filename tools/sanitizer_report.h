#pragma once

#include <memory>
#include <string>
#include <vector>

#include "page_file.h"

namespace ringbolt::tools {

/// What the sanitizer finds in the programs of one run, as other tools read it: SARIF 2.1.0, JUnit's XML, or an array
/// of JSON. The programs write their findings to a file of its own, which goes with it. Not thread-safe.
class SanitizerReport {
 public:
  /// `wanted`: "sarif:FILE", "junit:FILE", "json:FILE". Throws UsageError for another kind, base::Error where a file
  /// can't be written.
  explicit SanitizerReport(const std::vector<std::string>& wanted);
  SanitizerReport(const SanitizerReport&) = delete;
  SanitizerReport& operator=(const SanitizerReport&) = delete;
  ~SanitizerReport();

  /// For RINGBOLT_SANITIZE_JSON; empty: nobody wants a report.
  const std::string& lines_path() const { return lines_path_; }
  /// Once, when the programs have ended. Throws base::Error, EFBIG beyond 64 MiB of findings, and FoundProblem as the
  /// texts below do.
  /// Reads all that was found into memory.
  void write();

 private:
  struct Target {
    std::string kind;
    std::unique_ptr<PageFile> file;
  };
  std::vector<Target> targets_;
  std::string lines_path_;
};

// The three kinds, from lines of JSON; a line that is none (a program was killed while it wrote) is left out. Throw
// FoundProblem with the number of a line that is JSON and no finding: the programs may write anything there. Pure.
std::string sarif_text(const std::string& lines);
std::string junit_text(const std::string& lines);
std::string json_text(const std::string& lines);

}  // namespace ringbolt::tools
