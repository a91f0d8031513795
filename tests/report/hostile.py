"""What students' answers and logs may hold, by accident or not."""

ANSWERS = {
    "raw HTML": "<script>alert(1)</script> <b>bold</b><br>next <img src=x onerror=alert(1)>\n\n<div>\n\n*inside*",
    "TeX": "\\input{/etc/passwd} \\write18{ls} $\\notacommand{x}$ $$\\begin{align}a&=b\\\\c&=d\\end{align}$$ $x^2",
    "Typst": '#include "/etc/passwd"\n\n#import "@preview/x:0.1.0": *\n\n`#sys.inputs`{=typst} #panic() @label <la> $',
    "raw Typst": "```{=typst}\n#panic(\"no\")\n```\n\n```{=html}\n<hr>\n```",
    "formulas": "$\\text{漢字 🚀}$, $\\require{x}\\def\\a{b}\\a$, $" + "a+" * 400 + "b$\n\n$$" + "x_{1}+" * 200 + "y$$",
    "headings": "##### five\n\n# one\n\n###### six\n\n#\n\n### three",
    "unclosed": "```python\nnever closed\n\n# not a heading\n\n| a | b",
    "images": "![plot](https://example.org/a.png) ![](attachment:b.png) ![c](/etc/passwd) [x](javascript:alert(1)) [](https://e.org)",
    "emoji": "🚀 👩‍👩‍👧 ✅ 👍🏽 ➡️ 漢字 日本語 한국어 ไทย हिन्दी \U0001f9ff",
    "right to left": "שלום עולם مرحبا بالعالم \u202eabc\u202c \u2066x\u2069 1.5 × שלום",
    "controls": "a\x00b\x07c\x1b[31mred\x1b[0m\x1b]0;title\x07 \x7f \ufffe \ud800 \u2028 \u200b\u200f soft\u00adhyphen",
    "bar": "\r".join(f"  {n}%|{'█' * (n // 10)}| {n}/100 [00:01<00:09]" for n in range(0, 101, 10)) + "\nend",
    "long line": "x" * 20_000,
    "long code": "`" + "y" * 3000 + "`\n\n```\n" + "z" * 20_000 + "\n```",
    "long URL": "https://example.org/" + "a/" * 1000,
    "wide table": "|" + "|".join(f"c{n}" for n in range(30)) + "|\n|" + "---|" * 30 + "\n|" + "1|" * 30,
    "tables": "| | |\n|---|---|\n| $\\bad$ | " + "w" * 300 + " |",
    "deep": "> " * 300 + "quote\n\n" + "".join("  " * n + "- item\n" for n in range(120)),
    "many": "\n\n".join(f"- line {n}" for n in range(500)),
    "lists": "- [ ] open\n- [x] done\n1. one\n   1. two\n\n***\n\n~~gone~~ **bold *both***",
    "nothing": " \n\n\u200b",
}  # fmt: skip

LOGS = {
    "5,000 lines": "\n".join(f"Epoch {n}/5000\n4/4 - 1s - 10ms/step - loss: 1.5000" for n in range(5000)),
    "bars": "Epoch 1/1\n" + "\r".join(f" {n}/100 [=====>....] - ETA: {n}s" for n in range(100)) + "\r100/100 done\n",
    "bytes": "\x00\x01\xff\xfe binary \x1b[2J\x1b[31mError\x1b[0m",
    "long line": "Model " + "q" * 20_000,
}
