# Turns a page with one <style> and one <script> into C++: cmake -DPAGE=… -DSOURCE=… -P embed.cmake

# The text between two tags, the first of which must be there once.
function(between text open close out)
  string(FIND "${text}" "${open}" begin)
  string(FIND "${text}" "${open}" last REVERSE)
  string(FIND "${text}" "${close}" end)
  if(begin EQUAL -1 OR NOT begin EQUAL last OR end LESS begin)
    message(FATAL_ERROR "${PAGE}: one ${open}...${close} is wanted")
  endif()
  string(LENGTH "${open}" length)
  math(EXPR begin "${begin} + ${length}")
  math(EXPR length "${end} - ${begin}")
  string(SUBSTRING "${text}" ${begin} ${length} found)
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# Hexadecimal digits to base64; CMake has the one, a Content-Security-Policy wants the other.
function(to_base64 hex out)
  set(digits "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  string(LENGTH "${hex}" length)
  math(EXPR missing "(6 - ${length} % 6) % 6")
  string(REPEAT "0" ${missing} zeros)
  string(APPEND hex "${zeros}")
  set(result "")
  math(EXPR last "${length} + ${missing} - 1")
  foreach(at RANGE 0 ${last} 3)
    string(SUBSTRING "${hex}" ${at} 3 piece)
    math(EXPR high "0x${piece} >> 6")
    math(EXPR low "0x${piece} & 63")
    string(SUBSTRING "${digits}" ${high} 1 one)
    string(SUBSTRING "${digits}" ${low} 1 two)
    string(APPEND result "${one}${two}")
  endforeach()
  math(EXPR pads "${missing} / 2")
  string(LENGTH "${result}" length)
  math(EXPR length "${length} - ${pads}")
  string(SUBSTRING "${result}" 0 ${length} result)
  string(REPEAT "=" ${pads} pads)
  set(${out} "${result}${pads}" PARENT_SCOPE)
endfunction()

function(hash text out)
  string(SHA256 hex "${text}")
  to_base64(${hex} base64)
  set(${out} "'sha256-${base64}'" PARENT_SCOPE)
endfunction()

file(READ ${PAGE} html)
# Elsewhere an unbalanced bracket changes how CMake splits a list; here nothing is a list.
between("${html}" "<style>" "</style>" style)
between("${html}" "<script>" "</script>" script)
hash("${style}" style_hash)
hash("${script}" script_hash)
string(CONCAT policy "default-src 'none'; script-src ${script_hash}; style-src ${style_hash}; "
  "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
file(WRITE ${SOURCE} "#include \"telemetry/page.hpp\"

namespace kubelane::telemetry {

embedded_page status_page() noexcept {
  static constexpr std::string_view html = R\"PAGE(${html})PAGE\";
  static constexpr std::string_view policy = \"${policy}\";
  return {html, policy};
}

}  // namespace kubelane::telemetry
")
