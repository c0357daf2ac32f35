/** CDATA sections: text that is meant as it is, tags and references and all. */

const OPENING = /<!\[CDATA\[/gi
const OPENING_LENGTH = '<![CDATA['.length
const CLOSING = ']]>'

export interface Section {
  /** With the marks around it. */
  start: number
  end: number
  /** Without them. */
  from: number
  to: number
}

/** The next section that is closed; what is not closed is text. */
export function nextSection(text: string, at: number): Section | undefined {
  if (text.indexOf('<![', at) < 0) return undefined
  OPENING.lastIndex = at
  if (!OPENING.test(text)) return undefined
  const from = OPENING.lastIndex
  const to = text.indexOf(CLOSING, from)
  return to < 0 ? undefined : { start: from - OPENING_LENGTH, from, to, end: to + CLOSING.length }
}

/** Space at the beginning and end of a text is layout, inside of a section too. */
export function trimSections(text: string): string {
  if (nextSection(text, 0) === undefined) return text
  const isFirst = /^<!\[CDATA\[/i.test(text)
  const begun = isFirst ? text.slice(0, OPENING_LENGTH) + text.slice(OPENING_LENGTH).trimStart() : text
  return begun.endsWith(CLOSING) ? begun.slice(0, -CLOSING.length).trimEnd() + CLOSING : begun
}
