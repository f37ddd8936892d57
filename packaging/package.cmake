# The Debian package; `./dev package` makes it.
set(KUBELANE_PACKAGE_VERSION "" CACHE STRING "Version of the Debian package, if not the project's")
if(NOT KUBELANE_PACKAGE_VERSION)
  set(KUBELANE_PACKAGE_VERSION ${PROJECT_VERSION})
endif()
set(packaging ${CMAKE_CURRENT_LIST_DIR})
set(staging ${CMAKE_BINARY_DIR}/packaging)
file(MAKE_DIRECTORY ${staging})
# Packaging builds what it packs, not every test.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
string(TIMESTAMP KUBELANE_PACKAGE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)

# A copy compressed the way Debian wants it: the same bytes each time.
function(compress from to)
  execute_process(COMMAND gzip -9nc ${from} OUTPUT_FILE ${staging}/${to} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

configure_file(${packaging}/debian/changelog.in ${staging}/changelog.Debian @ONLY)
compress(${staging}/changelog.Debian changelog.Debian.gz)
compress(${PROJECT_SOURCE_DIR}/CHANGELOG.md changelog.gz)
compress(${packaging}/kubelane.1 kubelane.1.gz)

install(TARGETS kubelane RUNTIME DESTINATION bin)
install(FILES ${packaging}/lib/choose-binary DESTINATION lib/kubelane)
install(PROGRAMS ${packaging}/lib/started ${packaging}/lib/stopped ${packaging}/lib/fallback
  DESTINATION lib/kubelane)
file(GLOB units ${PROJECT_SOURCE_DIR}/systemd/*.service ${PROJECT_SOURCE_DIR}/systemd/*.timer)
install(FILES ${units} DESTINATION /lib/systemd/system)
install(FILES ${PROJECT_SOURCE_DIR}/systemd/kubelane.sysusers
  DESTINATION lib/sysusers.d RENAME kubelane.conf)
install(DIRECTORY DESTINATION /etc/kubelane)
install(FILES ${packaging}/kubelane.bash
  DESTINATION share/bash-completion/completions RENAME kubelane)
install(FILES ${staging}/kubelane.1.gz DESTINATION share/man/man1)
install(FILES ${staging}/changelog.Debian.gz ${staging}/changelog.gz ${packaging}/debian/copyright
  DESTINATION share/doc/kubelane)
install(FILES ${PROJECT_SOURCE_DIR}/docs/configuration.md ${PROJECT_SOURCE_DIR}/docs/operating.md
  ${PROJECT_SOURCE_DIR}/docs/metrics.md ${PROJECT_SOURCE_DIR}/docs/inventory.md
  DESTINATION share/doc/kubelane)
install(FILES ${packaging}/config.example.yaml
  DESTINATION share/doc/kubelane/examples RENAME config.yaml)

set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kubelane)
set(CPACK_PACKAGE_VERSION ${KUBELANE_PACKAGE_VERSION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "kubelane maintainers <maintainers@kubelane.invalid>")
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "systemd (>= 247), init-system-helpers (>= 1.54)")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "node-local load balancer for the Kubernetes API")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
  "Listens on localhost of every worker, knows the health of every control-plane
API server, and carries each connection of the node to a healthy one.

Restarts, upgrades and crashes of the service keep established connections.")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${packaging}/debian/preinst ${packaging}/debian/postinst
  ${packaging}/debian/prerm ${packaging}/debian/postrm)
include(CPack)
