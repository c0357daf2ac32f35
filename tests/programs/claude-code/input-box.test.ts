import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { inputBoxText, readInputBox } from '../../../src/programs/claude-code/input-box.ts'
import type { InputBox, PaneScreen } from '../../../src/programs/program.ts'

type Recorded = Record<string, { cursor: PaneScreen['cursor']; styled: string[] }>

function screenOf({ cursor, styled }: Recorded[string]): PaneScreen {
  const lines = styled.map((line) => line.replace(/\u001b\[[0-9;:]*m/g, '').trimEnd())
  return { lines, styled, cursor }
}

const WANTED: Record<string, InputBox> = {
  empty: 'empty',
  'empty after a draft': 'empty',
  'empty after an interrupt': 'empty',
  shortcuts: 'empty',
  // The paste guard asks for the state first.
  busy: 'empty',
  draft: 'draft',
  'draft of several lines': 'draft',
  'long paste': 'draft',
  'prompt put back': 'draft',
  'slash menu': 'draft',
  'shell mode': 'unknown',
  'empty shell mode': 'unknown',
  'permission dialog': 'unknown',
  'model menu': 'unknown',
  'transcript view': 'unknown',
}

describe.each(['2.1.325', '2.1.197'])('the input box of Claude Code %s', (version) => {
  const file = join(import.meta.dirname, 'fixtures', `screens-${version}.json`)
  const recorded = JSON.parse(readFileSync(file, 'utf8')) as Recorded

  it.each(Object.entries(WANTED))('on the recorded screen "%s" is %s (asks 3, 4)', (name, wanted) => {
    expect(readInputBox(screenOf(recorded[name]!))).toBe(wanted)
  })

  it('returns the text of a prompt that was put back', () => {
    expect(inputBoxText(screenOf(recorded['prompt put back']!))).toContain('[ORCHUB MESSAGE msg_1]')
    expect(inputBoxText(screenOf(recorded['permission dialog']!))).toBeUndefined()
  })

  it('treats a dim placeholder behind the cursor as an empty box, and the same text typed as a draft', () => {
    const { cursor, styled } = recorded.empty!
    const withText = (text: string, x: number) => {
      const lines = styled.with(cursor.y, `\u001b[39m❯ ${text}`)
      return screenOf({ cursor: { ...cursor, x }, styled: lines })
    }
    expect(readInputBox(withText('\u001b[7mT\u001b[0m\u001b[2mry "fix it"\u001b[0m', 2))).toBe('empty')
    expect(readInputBox(withText('\u001b[38;2;2;2;2mTry "fix it"\u001b[0m', 2))).toBe('draft')
    expect(readInputBox(withText('\u001b[2mTry "fix it"\u001b[0m', 6))).toBe('draft')
  })

  it('is unknown on a screen without a box', () => {
    expect(readInputBox({ lines: [], styled: [], cursor: { x: 0, y: 0 } })).toBe('unknown')
    expect(readInputBox({ lines: ['❯ '], styled: ['❯ '], cursor: { x: 2, y: 0 } })).toBe('unknown')
  })
})
