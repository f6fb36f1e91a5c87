#pragma once

#include <cstddef>
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
  /// Once, when the programs have ended. Reads all that was found into memory. Throws base::Error, EFBIG beyond 64 MiB
  /// of findings; and when all reports are written FoundProblem, if one of the lines is foreign_line().
  void write();

 private:
  struct Target {
    std::string kind;
    std::unique_ptr<PageFile> file;
  };
  std::vector<Target> targets_;
  std::string lines_path_;
};

// The three kinds, from lines of JSON. What is no finding is left out: a line that a program was killed in, or what
// else programs write there. Pure.
std::string sarif_text(const std::string& lines);
std::string junit_text(const std::string& lines);
std::string json_text(const std::string& lines);
/// The number of the first line, from 1 on, that is JSON and no finding; 0: there is none. Pure.
size_t foreign_line(const std::string& lines);

}  // namespace ringbolt::tools
