-- What becomes of a student's Markdown on its way to Typst: markup of ours around texts of theirs, which are strings.

local LONGEST, COLUMNS = 40, 8 -- characters of a word, columns of a table

local function quoted(text)
  return '"' .. text:gsub('[\\"]', '\\%0'):gsub("\n", "\\n") .. '"'
end

local function typst(blocks)
  return (pandoc.write(pandoc.Pandoc(blocks), "typst"):gsub("%s+$", ""))
end

local function breakable(text)
  local pieces, run = {}, 0
  for _, code in utf8.codes(text, true) do
    run = (code == 32 or code == 10 or code == 0x200b) and 0 or run + 1
    if run > LONGEST then
      pieces[#pieces + 1], run = "\u{200b}", 1
    end
    pieces[#pieces + 1] = utf8.char(code)
  end
  return table.concat(pieces)
end

function Str(element)
  return pandoc.Str(breakable(element.text))
end

function Math(element)
  local plain = pandoc.write(pandoc.Pandoc({ pandoc.Plain({ element }) }), "typst")
  local inside = plain:match("^%s*%$(.*)%$%s*$")
  if not inside or element.text:match("^%s*$") then
    return pandoc.RawInline("typst", "#unset(" .. quoted(breakable(element.text)) .. ")")
  end
  inside = inside:gsub("%f[%w]parallel%f[^%w.]", "scripts(parallel)") -- a norm's indices stand behind it
  local block = (element.mathtype == "DisplayMath" or #element.text > 100) and "true" or "false"
  local call = "#formula(" .. quoted(element.text) .. ", " .. quoted(inside) .. ", " .. block .. ")"
  return pandoc.RawInline("typst", call)
end

function Code(element)
  return pandoc.RawInline("typst", "#raw(" .. quoted(breakable(element.text)) .. ")")
end

function CodeBlock(element)
  return pandoc.RawBlock("typst", "#verbatim(" .. quoted(breakable(element.text)) .. ")")
end

function RawInline(element)
  if element.text:match("^<[bB][rR]%s*/?>$") then
    return pandoc.LineBreak()
  end
  return Code(element)
end

function RawBlock(element)
  return CodeBlock(element)
end

function Image(element)
  local name = pandoc.utils.stringify(element.caption)
  local text = "[picture, not in the report: " .. (name ~= "" and name or "without a name") .. "]"
  if element.src:match("^https?://") then
    return pandoc.Link({ pandoc.Str(text) }, element.src)
  end
  return pandoc.Str(text)
end

function Link(element)
  local text = element.content
  if pandoc.utils.stringify(text) == "" then
    text = { pandoc.Str(breakable(element.target)) }
  end
  if not element.target:match("^https?://[%w]") and not element.target:match("^mailto:") then
    return text
  end
  return pandoc.RawInline("typst", "#link(" .. quoted(element.target) .. ")[" .. typst({ pandoc.Plain(text) }) .. "]")
end

function Table(element)
  local simple = pandoc.utils.to_simple_table(element)
  local columns, cells = #simple.aligns, {}
  if columns > COLUMNS then -- too wide for a page
    local lines = {}
    local rows = { simple.header, table.unpack(simple.rows) }
    for _, row in ipairs(rows) do
      local texts = {}
      for i, cell in ipairs(row) do
        texts[i] = pandoc.utils.stringify(cell)
      end
      lines[#lines + 1] = table.concat(texts, " | ")
    end
    return pandoc.RawBlock("typst", "#verbatim(" .. quoted(breakable(table.concat(lines, "\n"))) .. ")")
  end
  local function add(row, header)
    for i = 1, columns do
      local inside = row[i] and typst(row[i]) or ""
      if header and inside == "" then
        inside = "column " .. i
      end
      cells[#cells + 1] = "[" .. inside .. "]"
    end
  end
  add(simple.header, true)
  for _, row in ipairs(simple.rows) do
    add(row, false)
  end
  return pandoc.RawBlock("typst", "#grid-of(" .. columns .. ", " .. table.concat(cells, ", ") .. ")")
end

-- Headings below that of the task, without gaps; empty ones go.
local function headings(document)
  local ranks, seen, last = {}, {}, 3
  document:walk({
    Header = function(header)
      seen[header.level] = true
    end,
  })
  local rank = 3
  for level = 1, 6 do
    if seen[level] then
      rank = rank + 1
      ranks[level] = rank
    end
  end
  return document:walk({
    traverse = "topdown",
    Header = function(header)
      if pandoc.utils.stringify(header) == "" then
        return {}
      end
      last = math.min(ranks[header.level], last + 1)
      return pandoc.RawBlock("typst", "#heading(level: " .. last .. ")[" .. typst({ pandoc.Plain(header.content) }) .. "]")
    end,
  })
end

return {
  { Str = Str, Math = Math, Code = Code, CodeBlock = CodeBlock, RawInline = RawInline, RawBlock = RawBlock, Image = Image },
  { Link = Link, Table = Table },
  { Pandoc = headings },
}
