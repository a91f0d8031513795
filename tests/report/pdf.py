"""A PDF as a reader with assistive technology gets it: its tags in order, and the text of each."""

import ctypes
from collections import namedtuple

import pikepdf
import pypdfium2
from pypdfium2 import raw

Tag = namedtuple("Tag", "kind alt text children attributes")


class Pdf:
    """tags: all structure elements in reading order, as Tag; language, title, marked: of the document."""

    def __init__(self, path):
        self.pages = pypdfium2.PdfDocument(path)
        with pikepdf.open(path) as pdf:
            root = pdf.Root
            self.language, self.marked = str(root.Lang), bool(root.MarkInfo.Marked)
            with pdf.open_metadata() as metadata:
                self.title, self.part = metadata.get("dc:title"), metadata.get("pdfuaid:part")
            self.shows_title = bool(root.ViewerPreferences.DisplayDocTitle)
            numbers = {page.obj.objgen: number for number, page in enumerate(pdf.pages)}
            self._texts = [_texts(page) for page in self.pages]
            self.tags = []
            self._walk(root.StructTreeRoot.K, None, numbers)

    def _walk(self, found, page, numbers):
        """Collect the tags below an entry of the structure tree; returns their text."""
        if isinstance(found, int):
            return self._texts[page].get(found, "")
        if isinstance(found, pikepdf.Array):
            return "".join(self._walk(each, page, numbers) for each in found)
        if "/Pg" in found:
            page = numbers[found.Pg.objgen]
        if "/MCID" in found:
            return self._texts[page].get(int(found.MCID), "")
        if "/S" not in found:  # an annotation
            return ""
        place = len(self.tags)
        self.tags.append(None)
        text = self._walk(found.K, page, numbers) if "/K" in found else ""
        alt = str(found.Alt) if "/Alt" in found else None
        attributes = found.A if "/A" in found else None
        self.tags[place] = Tag(str(found.S)[1:], alt, text, self.tags[place + 1 :], attributes)
        return text + ("" if str(found.S) in ("/Span", "/Link", "/Em", "/Strong", "/Code", "/Lbl") else "\n")

    def of(self, *kinds):
        return [tag for tag in self.tags if tag.kind in kinds]

    @property
    def text(self):
        """All text in reading order, with single spaces."""
        return plain(self.tags[0].text)

    def tables(self):
        """Each table as rows of (kind of cell, text)."""
        rows = [[row for row in table.children if row.kind == "TR"] for table in self.of("Table")]
        return [
            [[(c.kind, plain(c.text)) for c in row.children if c.kind in ("TH", "TD")] for row in of] for of in rows
        ]

    def blank_margins(self, width=40):
        """Whether nothing stands in the outer `width` points at the left and right of any page."""
        for page in self.pages:
            picture = page.render(scale=1, grayscale=True).to_numpy()
            if picture[:, :width].min() < 250 or picture[:, -width:].min() < 250:
                return False
        return True


def plain(text):
    """Text without the places where long words may be broken, and with single spaces."""
    return " ".join(text.replace("\u200b", "").split())


def _texts(page):
    """{number of marked content: text} of a page."""
    textpage, found = page.get_textpage(), {}
    for thing in page.get_objects(filter=[raw.FPDF_PAGEOBJ_TEXT], max_depth=1):
        mark = raw.FPDFPageObj_GetMarkedContentID(thing.raw)
        size = raw.FPDFTextObj_GetText(thing.raw, textpage.raw, None, 0)
        buffer = ctypes.create_string_buffer(size)
        raw.FPDFTextObj_GetText(thing.raw, textpage.raw, ctypes.cast(buffer, ctypes.POINTER(raw.FPDF_WCHAR)), size)
        found[mark] = found.get(mark, "") + buffer.raw.decode("utf-16-le").rstrip("\x00")
    return found
