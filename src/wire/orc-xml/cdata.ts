/** CDATA sections: text that is meant as it is, tags and references and all. */

const OPENING = '<![CDATA['
const CLOSING = ']]>'

/**
 * A text with what is outside of its sections and what is inside of them replaced, the marks around them included; the
 * latter are told where they begin and end. What is not closed is outside.
 */
export function replaceSections(
  text: string,
  outside: (text: string) => string,
  inside: (text: string, start: number, end: number) => string,
): string {
  if (!text.includes(CLOSING)) return outside(text)
  let replaced = ''
  let at = 0
  for (let start = nextOpening(text, 0); start >= 0; start = nextOpening(text, at)) {
    const from = start + OPENING.length
    const to = text.indexOf(CLOSING, from)
    if (to < 0) break
    if (start > at) replaced += outside(text.slice(at, start))
    at = to + CLOSING.length
    replaced += inside(text.slice(from, to), start, at)
  }
  return replaced + outside(text.slice(at))
}

function nextOpening(text: string, from: number): number {
  let at = text.indexOf('<![', from)
  while (at >= 0 && !isOpening(text, at)) at = text.indexOf('<![', at + 1)
  return at
}

function isOpening(text: string, at: number): boolean {
  return text.startsWith(OPENING, at) || text.slice(at, at + OPENING.length).toUpperCase() === OPENING
}

/** The same text with what is in sections blanked out, so that tags there are not seen. */
export function withoutSections(text: string): string {
  return replaceSections(
    text,
    (outside) => outside,
    (inside) => OPENING + '.'.repeat(inside.length) + CLOSING,
  )
}
