import { describe, expect, it } from 'vitest'
import { type EnvironmentOptions, environmentOf } from '../../src/runtimes/environment.ts'

function given(from: NodeJS.ProcessEnv, over: Partial<EnvironmentOptions> = {}) {
  return environmentOf({
    ...{ from, term: 'screen', extra: {}, agent: 'alice', mark: 'm1', bin: '/bin/orc' },
    credentials: { url: 'http://127.0.0.1:1', token: 'of-alice' },
    ...over,
  })
}

const OURS = {
  ...{ TERM: 'screen', ORC_URL: 'http://127.0.0.1:1', ORC_TOKEN: 'of-alice', ORC_AGENT: 'alice' },
  ...{ ORC_BIN: '/bin/orc', ORC_SESSION: 'm1' },
}

describe('the environment of an agent', () => {
  it('is the environment of the service, whatever it contains', () => {
    const own = {
      ...{ PATH: '/bin', HOME: '/h', LANG: 'de_DE.UTF-8', JAVA_HOME: '/java', GOPATH: '/go', UID: '7' },
      ...{ DOCKER_HOST: 'unix:///d', OPENAI_API_KEY: 'sk', HTTPS_PROXY: 'p', EMPTY: '', LINES_: 'a\'\n"' },
      ...{
        CLAUDE_CONFIG_DIR: '/c',
        CLAUDE_CODE_USE_BEDROCK: '1',
        NODE_EXTRA_CA_CERTS: '/ca',
        NPM_TOKEN: 't',
      },
      ...{ TERMINFO: '/t', GEMINI_CLI_HOME: '/g', CODEX_HOME: '/x', OPENCODE_CONFIG: '/o' },
    }
    expect(given(own)).toEqual({ ...own, ...OURS })
  })

  it('contains no variable that belongs to the service or would mislead the agent', () => {
    const names = [
      ...['ORC_HOME', 'ORC_CONFIG', 'ORC_NONCE', 'ORC_MODEL', 'ORC_DB_PASSWORD'],
      ...['TMUX', 'TMUX_PANE', 'STY', 'COLORTERM', 'TERM_PROGRAM', 'KITTY_WINDOW_ID', 'ZELLIJ', 'COLUMNS'],
      ...['npm_config_cache', 'npm_lifecycle_event', 'INIT_CWD', 'VITEST', 'VITEST_POOL_ID'],
      ...['NODE_OPTIONS', 'NODE_CHANNEL_FD', 'NODE_COMPILE_CACHE', 'NODE_UNIQUE_ID', 'NOTIFY_SOCKET'],
      ...['CLAUDECODE', 'CLAUDE_CODE_ENTRYPOINT', 'CLAUDE_CODE_SSE_PORT', 'CLAUDE_CODE_SESSION_ID'],
      ...['CI', 'CONTINUOUS_INTEGRATION', 'CI_JOB_ID'],
      ...['GEMINI_CLI', 'OPENCODE', 'CODEX_SANDBOX_NETWORK_DISABLED', 'PWD', 'OLDPWD', 'SHLVL', '_'],
      // No shell could set them.
      ...['BASH_FUNC_x%%', 'a.b', '1st', ''],
    ]
    const own = Object.fromEntries(names.map((name) => [name, 'x']))
    expect(given({ LANG: 'C', TERM: 'xterm', ...own })).toEqual({ LANG: 'C', ...OURS })
  })

  it('lets no setting give it another identity (C3)', () => {
    const further = { ORC_TOKEN: 'x', ORC_URL: 'x', ORC_AGENT: 'x', ORC_SESSION: 'x', ORC_BIN: 'x' }
    expect(given({ LANG: 'C', ORC_TOKEN: 'of the operator' }, { extra: further })).toEqual({
      LANG: 'C',
      ...OURS,
    })
  })

  it('prefers variables set by its program and orc.yaml to those of the service', () => {
    const further = { PATH: '/mine', TERM: 'xterm', ORC_NONCE: 'n' }
    expect(given({ LANG: 'C', PATH: '/bin', ORC_NONCE: 'other' }, { extra: further })).toEqual({
      ...{ LANG: 'C', ...OURS, ...further },
    })
  })

  it('uses UTF-8 by default', () => {
    expect(given({}).LANG).toBe('C.UTF-8')
    expect(given({ LANG: '' }).LANG).toBe('C.UTF-8')
    expect(given({ LC_ALL: 'C' })).not.toHaveProperty('LANG')
  })

  it('refuses a setting that is not a valid variable', () => {
    for (const further of [{ 'A=1; reboot #': '' }, { 'a-b': '' }, { A: 'nul\0' }]) {
      expect(() => given({}, { extra: further as Record<string, string> })).toThrow(
        'is not a valid environment variable',
      )
    }
  })
})
