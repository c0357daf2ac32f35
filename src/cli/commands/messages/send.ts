import { PRIORITIES } from '../../../messages/message.ts'
import { sendCommand } from '../../connection/send-command.ts'
import type { Verb } from '../../verb.ts'

export const verb: Verb = {
  name: 'send',
  summary: 'send a message to an agent; - reads standard input',
  details:
    'Short for `orc send-message --to AGENT TEXT`. An urgent message interrupts the agent, a high one is announced to it\n' +
    'at once, and others wait until its turn ends. During a halt, messages wait for `orc go`.',
  arguments: [{ name: 'AGENT' }, { name: 'TEXT', rest: true }],
  options: [
    { name: 'priority', value: 'PRIORITY', summary: PRIORITIES.join(', '), choices: PRIORITIES },
    {
      name: 'title',
      value: 'TEXT',
      summary: 'the subject (default: the first line of TEXT, up to 80 characters)',
    },
  ],
  examples: [
    'orc send Worker "Use the other API."',
    'orc send Worker "Stop, wrong branch." --priority urgent',
    'orc send Worker - < note.txt',
  ],
  async run({ words, option, json, location }) {
    const [to, ...text] = words
    const named = (name: string, value: string | undefined) =>
      value === undefined ? [] : [`--${name}`, value]
    const isInput = text.length === 1 && text[0] === '-'
    return await sendCommand('send-message', [
      ...['--to', to!],
      ...named('priority', option('priority')),
      ...named('title', option('title')),
      ...(json ? ['--json'] : []),
      ...named('config', location.configFile),
      ...(isInput ? ['-'] : ['--', text.join(' ')]),
    ])
  },
}
