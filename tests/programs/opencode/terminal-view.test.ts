import { describe, expect, it } from 'vitest'
import { showInPane, type TerminalView, viewOf } from '../../../src/programs/opencode/terminal-view.ts'

const HOME = [
  ' █▀▀█ █▀▀█ █▀▀█ █▀▀▄ █▀▀▀ █▀▀█ █▀▀█ █▀▀█',
  '',
  '  ┃',
  '  ┃  Ask anything… "Fix broken',
  '  ┃  tests"',
  '  ┃',
  '  ┃  Build · Scripted Scripted model',
  '  ╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀',
  '  /work  ⊙ 0 MCP /status        1.18.33',
]
const CONVERSATION = [
  '',
  '  ┃',
  '  ┃',
  '  ┃  Build · Scripted Scripted model',
  '  ╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀',
  '   /work           tab agents  ctrl+p commands',
]

describe('the view of opencode in the pane', () => {
  it.each<[TerminalView, string, string[]]>([
    ['nothing', 'before anything is drawn', ['', '  ', '']],
    ['other', 'before a conversation is open', HOME],
    ['other', 'while that is being drawn', HOME.slice(0, 3)],
    ['conversation', 'in one without a word', CONVERSATION],
    [
      'conversation',
      'in one where somebody invites questions',
      ['  ┃  Ask anything', '', '  Fine.', '', ...CONVERSATION],
    ],
  ])('is %s %s', (view, _, lines) => {
    expect(viewOf({ lines })).toBe(view)
  })
})

describe('a conversation of opencode', () => {
  /** Each snapshot shows the next screen; the last one repeats. */
  function pane(views: (TerminalView | Error)[], wantedLooks = 30) {
    const shown: number[] = []
    let looks = 0
    return {
      shown,
      options: {
        show: async () => void shown.push(looks),
        async view() {
          const view = views[Math.min(looks++, views.length - 1)]!
          if (view instanceof Error) throw view
          return view
        },
        isWanted: () => looks < wantedLooks,
      },
    }
  }

  it('is shown once the terminal interface is drawn, and not again once people see it', async () => {
    const { shown, options } = pane(['nothing', new Error('no pane yet'), 'other', 'other', 'conversation'])
    await showInPane(options)
    expect(shown).toEqual([3])
  })

  it('is shown again if the terminal interface did not listen yet', async () => {
    const { shown, options } = pane([...Array<TerminalView>(12).fill('other'), 'conversation'])
    await showInPane(options)
    expect(shown).toEqual([1, 12])
  })

  it('is no longer shown when another one replaces it', async () => {
    const { shown, options } = pane(['other'], 5)
    await showInPane(options)
    expect(shown).toEqual([1])
  })
})
