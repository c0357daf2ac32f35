import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { brief, LIST, scan } from './commands.ts'

/** CommonMark's rule for a single paragraph, word by word: which of the commands are text, and which are code? */
function judge(paragraph: string): string[] {
  const verdicts: string[] = []
  let rest = paragraph
  while (rest !== '') {
    const [run = ''] = /^`+/.exec(rest) ?? []
    if (run !== '') {
      const partner = [...rest.slice(run.length).matchAll(/`+/g)].find(([other]) => other === run)
      const end = partner === undefined ? 0 : run.length + partner.index
      verdicts.push(...rest.slice(0, end).split(LIST).slice(1).fill('code'))
      rest = rest.slice(end + run.length)
    } else if (rest.startsWith(LIST)) {
      verdicts.push('text')
      rest = rest.slice(LIST.length)
    } else rest = rest.slice(1)
  }
  return verdicts
}

describe('inline code', () => {
  it('follows CommonMark, wherever commands stand between backticks (S0.14)', () => {
    const part = fc.constantFrom('`', '``', '```', '````', ' ', 'a', '\nb', LIST, LIST)
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), (parts) => {
        const paragraph = `x${parts.join('')}`
        const verdicts = scan(paragraph).map((one) => (brief(one) === 'IN_CODE_BLOCK' ? 'code' : 'text'))
        expect(verdicts).toEqual(judge(paragraph))
      }),
      { numRuns: 3000 },
    )
  })
})
