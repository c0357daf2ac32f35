import { describe, expect, it } from 'vitest'
import { isWorking, readInputBox } from '../../../src/programs/gemini/input-box.ts'
import * as screens from './screens.ts'

describe('the input box of Gemini', () => {
  it.each([
    ['empty', 'empty', screens.empty],
    ['empty with vim keys, where text goes in', 'empty', screens.vimInsert],
    ['a draft', 'draft', screens.draft],
    ['a draft of several lines', 'draft', screens.multiline],
    ['a large paste that was not sent', 'draft', screens.pasted],
    ['the words of the placeholder, typed by a person', 'draft', screens.imitation],
    ['vim keys where no text goes in', 'draft', screens.vimNormal],
    ['shell mode', 'unknown', screens.shellMode],
    ['a dialog in its place', 'unknown', screens.dialog('touch a.txt')],
    ['nothing at all', 'unknown', { lines: [], styled: [], cursor: { x: 0, y: 0 } }],
  ] as const)('is recognized: %s', (_name, expected, screen) => {
    expect(readInputBox(screen)).toBe(expected)
  })

  it('is distinguished from a working program', () => {
    expect(isWorking(screens.working)).toBe(true)
    expect(isWorking(screens.empty)).toBe(false)
  })
})
