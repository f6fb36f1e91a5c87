#pragma once

#include <string>

#include "doctor/check.h"

namespace ringbolt::tools::doctor {

/// For people, fit for a terminal whatever was read. Ends in a line that counts what was judged, and tells what could
/// not be read.
std::string report_text(const Facts& facts, const Diagnosis& diagnosis);
/// The same as JSON; docs/doctor.md has its fields.
std::string report_json(const Facts& facts, const Diagnosis& diagnosis);
/// A page that needs no other file, light or dark as the reader's screen is.
std::string report_html(const Facts& facts, const Diagnosis& diagnosis);

/// One finding of report_text(), without its number.
std::string finding_text(const Finding& finding);

/// All checks, a table for people, or as JSON.
void print_checks(bool is_json);

}  // namespace ringbolt::tools::doctor
