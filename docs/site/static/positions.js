// Recorded positions of a widget: a slider shows its picture, and puts the others back to their first position.
addEventListener("input", ({ target }) => {
  const widget = target.closest(".positions")
  if (!widget) return
  for (const slider of widget.querySelectorAll("input")) {
    if (slider !== target) slider.value = slider.dataset.first
    const text = JSON.parse(slider.dataset.texts)[slider.value]
    slider.setAttribute("aria-valuetext", text)
    slider.parentElement.querySelector("output").textContent = text
  }
  const at = target.value === target.dataset.first ? " 0" : `${target.id} ${target.value}`
  for (const image of widget.querySelectorAll("img")) image.hidden = image.dataset.at !== at
})
// A browser may keep the positions of a page that is loaded again.
for (const slider of document.querySelectorAll(".positions input")) slider.value = slider.dataset.first
