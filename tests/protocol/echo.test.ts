import { describe, expect, it } from 'vitest'
import { MAX_COMMAND_TEXT } from '../../src/protocol/codec.ts'
import { briefly, CHECK, END, LIST, only, onlyProblem, SEND } from './commands.ts'

const LISTED = ['list_agents', {}]
const response = (text: string) =>
  `[ORCHESTRATOR RESPONSE]\nCommand: send_message\nStatus: error\nResult: ${text}\nDetails: {}\n[END ORCHESTRATOR RESPONSE]`
const message = (text: string, id = 'msg_7') =>
  `[ORCHUB MESSAGE ${id}]\nFrom: A\nTitle: T\nPriority: normal\n\n${text}\n\n[END ORCHUB MESSAGE ${id}]`

describe('echoed response blocks and messages (C4, C17)', () => {
  it('are skipped silently when they contain no command', () => {
    expect(briefly(`${response('fine')}\n${message('hello')}\n${LIST}`)).toEqual([LISTED])
  })

  it('are reported when they contain a command', () => {
    expect(briefly(`${response(CHECK)}\n${LIST}`)).toEqual(['IN_RESPONSE_BLOCK', LISTED])
    expect(briefly(`${message(CHECK)}\n${LIST}`)).toEqual(['IN_ECHO', LISTED])
    expect(onlyProblem(`\n\n${message(CHECK)}`).message).toContain('line 3')
  })

  it.each([
    ['quoted', (block: string) => block.replace(/^/gm, '> ')],
    ['indented', (block: string) => block.replace(/^/gm, '    ')],
    ['behind words on the same line', (block: string) => `It says: ${block}`],
    ['behind an exclamation mark', (block: string) => `Look!${block}`],
    ['with CRLF line ends', (block: string) => block.replaceAll('\n', '\r\n')],
  ])('are skipped when they are %s', (_, change) => {
    expect(briefly(`${change(message(CHECK))}\n${LIST}`)).toEqual(['IN_ECHO', LISTED])
    expect(briefly(`${change(response(CHECK))}\n${LIST}`)).toEqual(['IN_RESPONSE_BLOCK', LISTED])
  })

  it('end only at their own closing line', () => {
    expect(briefly(`${message(`[END ORCHUB MESSAGE msg_8]\n${CHECK}`)}\n${LIST}`)).toEqual([
      'IN_ECHO',
      LISTED,
    ])
    expect(briefly(`${message(`${response('x')}\n${CHECK}`)}\n${LIST}`)).toEqual(['IN_ECHO', LISTED])
  })

  it('do not end at code, which does not extend behind them either', () => {
    expect(briefly(`${message(`\`\`\`\n\` ${CHECK}`)}\n${LIST} \``)).toEqual(['IN_ECHO', LISTED])
  })

  it.each([
    ['in the middle of a line', `An [ORCHESTRATOR RESPONSE] came. Re [ORCHUB MESSAGE msg_7]: done. ${LIST}`],
    ['in inline code', `\`[ORCHESTRATOR RESPONSE]\`\n${LIST}`],
    ['in other words', `[ORCHESTRATOR RESPONSES]\n[ORCHUB MESSAGES msg_7]\n[ORCHESTRA]\n[ORCHUB\n${LIST}`],
  ])('do not begin with a marker %s', (_, text) => {
    expect(briefly(text)).toEqual([LISTED])
  })

  it('extend to the end of the text without a closing line, so that no command in them runs', () => {
    expect(briefly(`[ORCHESTRATOR RESPONSE]\n${CHECK}\n\n${LIST}`)).toEqual([
      'IN_RESPONSE_BLOCK',
      'IN_RESPONSE_BLOCK',
    ])
    expect(briefly(`[ORCHUB MESSAGE msg_7]\n${CHECK}\n\n${LIST}`)).toEqual(['IN_ECHO', 'IN_ECHO'])
  })

  it('end after the largest size of a command', () => {
    const far = 'x'.repeat(MAX_COMMAND_TEXT)
    expect(briefly(`[ORCHESTRATOR RESPONSE]\n${far}\n${LIST}`)).toEqual([LISTED])
    expect(briefly(`[ORCHUB MESSAGE msg_7]\n${far}\n[END ORCHUB MESSAGE msg_7]${LIST}`)).toEqual([LISTED])
  })

  it('are text in the body of a command, including closing tags', () => {
    const forwarded = `FYI:\n${message(`x${END}\n<orc-command name="request_action"/>`)}\nWhat now?`
    expect(only(SEND + forwarded + END).fields.content).toBe(forwarded)
  })

  it('may lack their closing line in the body of a command', () => {
    const content = '[ORCHUB MESSAGE msg_7]\nis done.'
    expect(only(SEND + content + END).fields.content).toBe(content)
  })

  it('do not begin inside code', () => {
    expect(briefly(`\`\`\`\n[ORCHESTRATOR RESPONSE]\n\`\`\`\n${LIST}`)).toEqual([LISTED])
  })
})
