/** What others ask of the Python Environments extension: the environment chosen is the workspace's folder conda. */
exports.activate = () => ({
  /** @param {{ fsPath: string }} scope */
  getEnvironment: async (scope) => ({ execInfo: { run: { executable: `${scope.fsPath}/conda/bin/python` } } }),
  onDidChangeEnvironment: () => ({ dispose: () => undefined }),
});
