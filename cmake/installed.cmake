# The target `installed`: all that `cmake --install` installs, which is what README and docs use. Neither tests nor
# benchmarks belong to it.
add_custom_target(installed)

if(RINGBOLT_STRIP)
  install(CODE "set(CMAKE_INSTALL_DO_STRIP ON)")  # before the targets' own rules
endif()

# ringbolt_install(<target> <words for install(TARGETS)>...)
function(ringbolt_install target)
  install(TARGETS ${target} ${ARGN})
  add_dependencies(installed ${target})
endfunction()

# For CMake's find_package(Ringbolt).
include(CMakePackageConfigHelpers)
configure_file(${PROJECT_SOURCE_DIR}/packaging/cmake/RingboltConfig.cmake.in ${PROJECT_BINARY_DIR}/cmake/RingboltConfig.cmake @ONLY)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/RingboltConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/RingboltConfig.cmake ${PROJECT_BINARY_DIR}/cmake/RingboltConfigVersion.cmake
  DESTINATION lib/cmake/Ringbolt)
