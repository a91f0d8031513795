-- What becomes of a student's Markdown on its way to Typst: markup of ours around texts of theirs, which are strings.

local COLUMNS = 8 -- more do not fit on a page

local function quoted(text)
  return '"' .. text:gsub('[\\"]', '\\%0'):gsub("\n", "\\n") .. '"'
end

local function typst(blocks)
  return (pandoc.write(pandoc.Pandoc(blocks), "typst"):gsub("%s+$", ""))
end

local function verbatim(text)
  return pandoc.RawBlock("typst", "#verbatim(" .. quoted(text) .. ")")
end

function Math(element)
  local inside = typst({ pandoc.Plain({ element }) }):match("^%s*%$(.*)%$$")
  if not inside or element.text:match("^%s*$") then
    return pandoc.RawInline("typst", "#unset(" .. quoted(element.text) .. ")")
  end
  inside = inside:gsub("%f[%w]parallel%f[^%w.]", "scripts(parallel)") -- a norm's indices stand behind it
  local block = (element.mathtype == "DisplayMath" or #element.text > 100) and "true" or "false"
  local call = "#formula(" .. quoted(element.text) .. ", " .. quoted(inside) .. ", " .. block .. ")"
  return pandoc.RawInline("typst", call)
end

function Code(element)
  return pandoc.RawInline("typst", "#raw(" .. quoted(element.text) .. ")")
end

function CodeBlock(element)
  return verbatim(element.text)
end

function RawInline(element)
  if element.text:match("^<[bB][rR]%s*/?>$") then
    return pandoc.LineBreak()
  end
  return Code(element)
end

function Image(element)
  local text = "[picture, not in the report: " .. pandoc.utils.stringify(element.caption) .. "]"
  return pandoc.Link({ pandoc.Str(text) }, element.src)
end

function Link(element)
  if pandoc.utils.stringify(element.content) == "" then
    element.content = { pandoc.Str(element.target) }
  end
  local allowed = element.target:match("^https?://[%w]") or element.target:match("^mailto:")
  return allowed and element or element.content
end

function Table(element)
  local simple = pandoc.utils.to_simple_table(element)
  if #simple.aligns > COLUMNS then
    return verbatim(pandoc.write(pandoc.Pandoc({ element }), "gfm"))
  end
  local cells = {}
  for column = 1, #simple.aligns do
    local name = typst(simple.header[column] or {})
    cells[column] = "[" .. (name == "" and "column " .. column or name) .. "]"
  end
  for _, row in ipairs(simple.rows) do
    for _, cell in ipairs(row) do
      cells[#cells + 1] = "[" .. typst(cell) .. "]"
    end
  end
  return pandoc.RawBlock("typst", "#grid-of(" .. #simple.aligns .. ", " .. table.concat(cells, ", ") .. ")")
end

-- All headings stand below that of the answer; empty ones go.
function Header(element)
  if pandoc.utils.stringify(element) == "" then
    return {}
  end
  return pandoc.RawBlock("typst", "#heading(level: 4)[" .. typst({ pandoc.Plain(element.content) }) .. "]")
end

return {
  { Math = Math, Code = Code, CodeBlock = CodeBlock, RawInline = RawInline, RawBlock = CodeBlock, Image = Image },
  { Link = Link },
  { Table = Table, Header = Header },
}
