const STOP: ReadonlySet<string> = new Set(
  'the and for with that this from have has not but you your are was were when what how why can does into out its they them then than there here will would could should about after before only also just been more some any all get got use using'.split(
    ' ',
  ),
)
const MAX_WORDS = 12

/** Words for the search of related threads: letters and digits only, so that no search engine reads them as syntax. */
export function searchWords(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]{3,40}/gu) ?? []
  return [...new Set(words)].filter((word) => !STOP.has(word)).slice(0, MAX_WORDS)
}

const MAX_MENTIONS = 20

export function mentionsIn(text: string): string[] {
  const found = text.matchAll(/(?:^|[^\w`/])(@[A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))(?![\w/])/g)
  return [...new Set([...found].map(([, login]) => login!))].slice(0, MAX_MENTIONS)
}

/** `#123` in a text. */
export function numbersIn(text: string): number[] {
  const found = text.matchAll(/(?:^|[\s(])#([1-9]\d{0,8})\b/g)
  return [...new Set([...found].map(([, number]) => Number(number)))].slice(0, MAX_MENTIONS)
}
